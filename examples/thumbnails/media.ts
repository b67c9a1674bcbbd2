// The media of the example: which objects there are, what is wrong with each, and how it is made. Everything is drawn
// here; nothing is downloaded.
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import sharp from "sharp";
import { makeVideo } from "./ffmpeg.ts";
import { folder, planFaults, write } from "./object-store.ts";

/** What is the matter with an object. */
export type Fate =
  /** Nothing. */
  | "good"
  /** Its upload broke off in the middle. */
  | "cut"
  /** It is no image or video, whatever its name says. */
  | "garbage"
  /** It was announced and is not there. */
  | "missing"
  /** The store answers 503 twice, then it is there. */
  | "flaky"
  /** The store answers 503 all day. */
  | "outage";

/** An object that a thumbnail is wanted of. */
export interface Medium {
  readonly key: string;
  readonly kind: "image" | "video";
  readonly fate: Fate;
}

type Amounts = Readonly<Record<Fate, number>>;
const IMAGES: Readonly<Record<"small" | "full", Amounts>> = {
  small: { good: 6, cut: 1, garbage: 1, missing: 2, flaky: 1, outage: 1 },
  full: { good: 60, cut: 3, garbage: 2, missing: 6, flaky: 4, outage: 1 },
};
const VIDEOS: Readonly<Record<"small" | "full", Amounts>> = {
  small: { good: 1, cut: 1, garbage: 0, missing: 0, flaky: 0, outage: 0 },
  full: { good: 6, cut: 1, garbage: 1, missing: 1, flaky: 0, outage: 0 },
};
const ENDINGS = ["jpg", "png", "webp"] as const;
const ALL_DAY = 1_000;

/** Every object of a run, in an order in which the bad ones lie between the good ones. */
export function planMedia(size: "small" | "full", { videos }: { readonly videos: boolean }): Medium[] {
  const media: Medium[] = [];
  const add = (kind: Medium["kind"], amounts: Amounts, name: (number: string) => string): void => {
    const fates = Object.entries(amounts).flatMap(([fate, count]) => Array<Fate>(count).fill(fate as Fate));
    const step = fates.length % 7 === 0 ? 5 : 7;
    for (let at = 0; at < fates.length; at++) {
      const fate = fates[(at * step) % fates.length] as Fate;
      media.push({ kind, fate, key: name(String(at + 1).padStart(2, "0")) });
    }
  };
  add("image", IMAGES[size], (number) => `photo-${number}.${ENDINGS[Number(number) % ENDINGS.length]}`);
  if (videos) add("video", VIDEOS[size], (number) => `clip-${number}.mp4`);
  return media;
}

/** Puts the object into the store as its fate has it; a missing one is not put there. */
export async function upload({ key, kind, fate }: Medium): Promise<void> {
  if (fate === "missing") return;
  if (fate === "garbage") return write("objects", key, Buffer.from("This is no picture.\n".repeat(200)));
  const bytes = kind === "image" ? await drawImage(key) : await drawVideo(key);
  await write("objects", key, fate === "cut" ? bytes.subarray(0, bytes.length / 2) : bytes);
  if (fate === "flaky") await planFaults(key, 2);
  if (fate === "outage") await planFaults(key, ALL_DAY);
}

/** A gradient with a disc, or noise; in the format that the name says. */
async function drawImage(key: string): Promise<Buffer> {
  const number = Number(/\d+/.exec(key)?.[0]);
  const [width, height] = number % 2 === 0 ? [900, 600] : [540, 720];
  const hue = (number * 47) % 360;
  const drawn = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
    <linearGradient id="g" x2="1" y2="1"><stop stop-color="hsl(${hue},80%,60%)"/>
    <stop offset="1" stop-color="hsl(${(hue + 90) % 360},70%,25%)"/></linearGradient>
    <rect width="100%" height="100%" fill="url(#g)"/><circle cx="50%" cy="40%" r="${60 + number}" fill="white"/></svg>`;
  const noise = { type: "gaussian", mean: 128, sigma: 40 } as const;
  const image =
    number % 6 === 0
      ? sharp({ create: { width, height, channels: 3, background: "black", noise } })
      : sharp(Buffer.from(drawn)).flatten();
  if (key.endsWith(".png")) return image.png({ compressionLevel: 1 }).toBuffer();
  return key.endsWith(".webp") ? image.webp({ effort: 0 }).toBuffer() : image.jpeg().toBuffer();
}

async function drawVideo(key: string): Promise<Buffer> {
  const path = join(folder, `drawing-${key}`);
  await makeVideo(path, "320x240");
  const bytes = await readFile(path);
  await rm(path);
  return bytes;
}
