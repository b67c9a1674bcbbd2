// The job types: what a worker does with an image and with a video. Loaded as it is by `redrive worker --jobs jobs.ts`.
// Attempts and delays are not set here, so MAX_RETRY_ATTEMPTS and RETRY_DELAY_SECONDS decide, or the config file.
import { type ClassifyRule, defineJob, PermanentError } from "redrive";
import sharp, { type OutputInfo } from "sharp";
import { BrokenFileError } from "./broken-file.ts";
import { pictureOf } from "./ffmpeg.ts";
import { isKey, locate, read, write } from "./object-store.ts";

// A worker runs several jobs at a time; each of them keeps to one thread.
sharp.concurrency(1);

/** Thumbnails fit into squares of these sizes. */
export const SIZES = [96, 256, 512] as const;

/** A thumbnail that was made. */
export interface Thumbnail {
  readonly key: string;
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
}

/** What a job leaves as its result. */
export interface Made {
  readonly thumbnail_key: string;
  readonly thumbnails: readonly Thumbnail[];
  readonly ms: number;
}

// What Redrive cannot know. The rest it does: status 404 is permanent, 503 transient, ENOSPC system, and so on.
const classify: ClassifyRule[] = [
  { class: "validation", name: "BrokenFileError" },
  { class: "system", name: "FfmpegMissingError" },
];

const shared = { queue: "thumbnails", service: "object-store", timeout: "30s", classify } as const;

/** Thumbnails of an image. */
export const imageThumbnail = defineJob("image-thumbnail", {
  ...shared,
  async run({ key }: { key: string }, { signal }): Promise<Made> {
    check(key);
    const startedAt = performance.now();
    return makeThumbnails(key, await read(key), { signal, startedAt });
  },
});

/** Thumbnails of a picture in a video. */
export const videoThumbnail = defineJob("video-thumbnail", {
  ...shared,
  concurrency: 2, // ffmpeg takes a core of its own.
  async run({ key }: { key: string }, { signal }): Promise<Made> {
    check(key);
    const startedAt = performance.now();
    return makeThumbnails(key, await pictureOf(await locate(key), signal), { signal, startedAt });
  },
});

function check(key: string): void {
  if (!isKey(key)) throw new PermanentError(`key: expected the name of an object; got ${JSON.stringify(key)}`);
}

/**
 * All sizes are made before the first is written, so a broken file leaves nothing. Written under the object's key, so a
 * job that runs twice, after a `kill -9` for example, replaces its own thumbnails and makes no second set.
 */
async function makeThumbnails(
  key: string,
  picture: Buffer,
  { signal, startedAt }: { readonly signal: AbortSignal; readonly startedAt: number },
): Promise<Made> {
  const made = await Promise.all(SIZES.map((size) => shrink(picture, size)));
  const thumbnails: Thumbnail[] = [];
  for (const [index, { data, info }] of made.entries()) {
    signal.throwIfAborted();
    const thumbnail = `${key}/${SIZES[index]}.webp`;
    await write("thumbnails", thumbnail, data);
    thumbnails.push({ key: thumbnail, width: info.width, height: info.height, bytes: data.length });
  }
  return { thumbnail_key: `${key}/256.webp`, thumbnails, ms: Math.round(performance.now() - startedAt) };
}

// The bytes are in memory, so whatever sharp has to say is about them.
async function shrink(picture: Buffer, size: number): Promise<{ data: Buffer; info: OutputInfo }> {
  try {
    const resized = sharp(picture, { failOn: "warning" }).resize({ width: size, height: size, fit: "inside" });
    return await resized.webp({ effort: 2 }).toBuffer({ resolveWithObject: true });
  } catch (cause) {
    throw new BrokenFileError(`sharp cannot read it: ${(cause as Error).message.trim().split("\n").at(-1)}`, { cause });
  }
}
