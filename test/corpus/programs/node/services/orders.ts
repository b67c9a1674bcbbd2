// Orders: lookups, totals, states, and what a customer may do with them.

import assert from "node:assert";
import type { Cause } from "../data.ts";

class OrderNotFound extends Error {
  orderId: string;
  constructor(orderId: string) {
    super(`Order ${orderId} not found`);
    this.name = "OrderNotFound";
    this.orderId = orderId;
  }
}

class InvalidTransition extends Error {
  code = "INVALID_TRANSITION";
}

interface Line {
  sku: string;
  quantity: number;
  price: { net: number };
}
const orders = new Map<string, { state: string; lines: Line[]; customer?: { address: { city: string } } }>();

function findOrder(id: string) {
  const order = orders.get(id);
  if (order === undefined) throw new OrderNotFound(id);
  return order;
}

function lineTotal(line: Line): number {
  return line.quantity * line.price.net;
}

function orderTotal(lines: Line[]): number {
  return lines.map((line) => lineTotal(line)).reduce((sum, each) => sum + each);
}

function shippingCity(id: string): string {
  const order = orders.get(id) as { customer: { address: { city: string } } };
  return order.customer.address.city.toUpperCase();
}

class OrderState {
  id: string;
  state = "open";
  constructor(id: string) {
    this.id = id;
  }
  moveTo(next: string): void {
    if (next === "open") throw new InvalidTransition(`Order ${this.id} is already ${this.state}`);
    if (next === "shipped") throw new InvalidTransition(`Order ${this.id} cannot go from ${this.state} to ${next}`);
    this.state = next;
  }
  static parse(text: string): OrderState {
    const [id, state] = text.split(":") as [string, string];
    return Object.assign(new OrderState(id), { state: state.trim() });
  }
}

async function reserveStock(sku: string, wanted: number): Promise<void> {
  await Promise.resolve();
  const left = wanted - 3;
  if (left < wanted) throw new Error(`Only ${left} of ${sku} left, ${wanted} wanted`);
}

async function placeOrder(id: string, sku: string, wanted: number): Promise<string> {
  await reserveStock(sku, wanted);
  return id;
}

async function cancelOrder(id: string): Promise<void> {
  await Promise.resolve();
  const order = findOrder(id);
  order.state = "cancelled";
}

function checkAmounts(expected: string, got: string): void {
  assert.strictEqual(got, expected);
}

function checkCurrency(currency: string): void {
  assert(currency === "EUR", `Currency of order must be EUR, got ${currency}`);
}

function discountFor(customer: { name: string }): number {
  const tier = (customer as unknown as { loyaltyTier(): number }).loyaltyTier();
  return tier * 2;
}

export const causes: Cause[] = [
  ["orders: order not found on lookup", (d) => findOrder(d.uuid)],
  ["orders: order not found on cancel", (d) => cancelOrder(d.uuid)],
  ["orders: line without price", (d) => orderTotal([{ sku: d.sku, quantity: 2 } as Line])],
  ["orders: no lines to add up", () => orderTotal([])],
  ["orders: order unknown to shipping", (d) => shippingCity(d.uuid)],
  [
    "orders: customer unknown to shipping",
    (d) => {
      orders.set(d.uuid, { state: "open", lines: [] });
      try {
        return shippingCity(d.uuid);
      } finally {
        orders.delete(d.uuid);
      }
    },
  ],
  ["orders: already open", (d) => new OrderState(String(d.id)).moveTo("open")],
  ["orders: open order shipped", (d) => new OrderState(String(d.id)).moveTo("shipped")],
  ["orders: state text without state", (d) => OrderState.parse(d.uuid)],
  ["orders: stock too low", (d) => placeOrder(d.uuid, d.sku, d.other)],
  ["orders: amounts differ", (d) => checkAmounts(d.amount, String(d.id))],
  ["orders: currency not EUR", (d) => checkCurrency(d.word.slice(0, 3).toUpperCase())],
  ["orders: customer without method", (d) => discountFor({ name: d.name })],
];
