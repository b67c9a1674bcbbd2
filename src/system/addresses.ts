// Which addresses a program may be sent to by its configuration: public ones, and those that the user names. Everything
// that leads into this machine, its network or the services of a cloud's metadata is refused, in every spelling of IPv4
// inside IPv6.
import { BlockList, isIP } from "node:net";
import { invalid } from "../core/options.ts";

/** What is not the public internet: RFC 6890 and its successors. IPv6 has one public range, with exceptions inside. */
const CLOSED_4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/** Inside 2000::/3: Teredo, documentation, 6to4 (which carries an IPv4 address), and others that lead to no public host. */
const CLOSED_6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

function listOf(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) add(list, subnet);
  return list;
}

function add(list: BlockList, subnet: string): boolean {
  const [address = "", bits] = subnet.split("/");
  const version = isIP(address);
  const most = version === 4 ? 32 : 128;
  const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (version === 0 || length < 0 || length > most) return false;
  list.addSubnet(address, length, version === 4 ? "ipv4" : "ipv6");
  return true;
}

const closed4 = listOf(CLOSED_4);
const closed6 = listOf(CLOSED_6);
const open6 = listOf(["2000::/3"]);

/** True for an address that `allow` names, or that is public. */
export function isAllowed(address: string, allow: BlockList): boolean {
  const version = isIP(address);
  if (version === 4) return allow.check(address) || !closed4.check(address);
  if (version === 0 || address.includes("%")) return false;
  // A mapped address is judged as the IPv4 address it stands for, which BlockList knows.
  return allow.check(address, "ipv6") || (open6.check(address, "ipv6") && !closed6.check(address, "ipv6"));
}

/** Addresses and subnets that the user allows, checked. */
export function parseAllow(value: unknown, name: string): BlockList {
  const list = new BlockList();
  const items = value ?? [];
  if (!Array.isArray(items))
    throw invalid(name, 'a list of addresses such as "10.0.0.7" or "10.0.0.0/8"', value, "pass one");
  for (const item of items)
    if (typeof item !== "string" || !add(list, item))
      throw invalid(name, 'addresses such as "10.0.0.7", or subnets such as "10.0.0.0/8"', item, "correct it");
  return list;
}
