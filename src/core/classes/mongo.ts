// MongoDB and Mongoose: the server's error number, its labels, and the names of the driver's errors. The numbers count
// only in an error that is MongoDB's by its name or `codeName`, because 6, 7 and 13 mean other things in gRPC.

import { read, readMembers, readPath, readText } from "../error-shape.ts";
import { type Clue, type Family, readNumber, table } from "./clue.ts";
import { classOfWord } from "./words.ts";

const NUMBERS = table({
  network: "6 7 9001 384",
  timeout: "50 89 202 262 290",
  transient: `24 43 46 63 64 91 94 100 109 112 117 133 134 136 150 175 189 211 225 234 236 237 239 246 249 251 267 314
    356 10058 10107 11600 11601 11602 13388 13435 13436`,
  rate_limited: "462 16500",
  system: "39 146 14031",
  validation: `2 9 14 15 16 22 28 40 51 52 53 54 55 56 57 58 60 66 72 73 121 168 10334 16755 16837 17280 17419 31249
    40353`,
  permanent: `4 5 10 12 19 20 23 26 27 38 47 48 59 61 62 67 68 74 76 85 86 93 101 115 118 130 165 166 238 256 257 263
    280 286 292 303 304 323 10003 11000 11001 12582 13297 17300 40324 40415`,
  authentication: "11 13 18 31 32 33 69 70 334 391 8000",
});
const NAMES = table({
  network: `MongoNetworkError MongoServerSelectionError MongoTopologyClosedError MongoNotConnectedError
    MongoPoolClearedError MongoPoolClosedError PoolClearedOnNetworkError MongooseServerSelectionError
    MongoServerClosedError MongoClientClosedError`,
  timeout: "MongoNetworkTimeoutError MongoWaitQueueTimeoutError MongoOperationTimeoutError MongoGCPTimeoutError",
  transient: `MongoExpiredSessionError MongoUnexpectedServerResponseError MongoStalePrimaryError VersionError
    MongoCursorExhaustedError MongoSystemError ParallelSaveError`,
  validation: `MongoInvalidArgumentError MongoParseError BSONError BSONVersionError BSONOffsetError BSONTypeError
    CastError ValidatorError StrictModeError StrictPopulateError ObjectParameterError ObjectExpectedError`,
  permanent: `MongoMissingDependencyError MongoCompatibilityError MongoAPIError MongoTransactionError
    MongoDecompressionError MongoClientEncryptionError DocumentNotFoundError MissingSchemaError OverwriteModelError
    DivergentArrayError MongooseBulkWriteError MongoCursorInUseError MongoChangeStreamError MongoGridFSStreamError
    MongoGridFSChunkError MongoBatchReExecutionError`,
  authentication: "MongoMissingCredentialsError MongoAWSError MongoAzureError MongoOIDCError MongoKerberosError",
});
const TRY_AGAIN = ["RetryableWriteError", "TransientTransactionError", "RetryableError", "SystemOverloadedError"];

/** MongoDB. */
export const mongo: Family = (clue) => {
  const { error, name, type } = clue;
  const isServer =
    /^Mongo(?:Server|BulkWrite|WriteConcern|Error)/.test(type) ||
    /^Mongo(?:Server|BulkWrite|WriteConcern|Error)/.test(name);
  const named = NAMES.get(name) ?? NAMES.get(type);
  if (named !== undefined) return named;
  if (type === "MongooseError" && clue.message.includes("buffering timed out")) return "timeout";
  if (!isServer && readText(error, "codeName") === undefined)
    return clue.message.startsWith("E11000 ") ? "permanent" : undefined;
  return byServer(clue);
};

function byServer({ error }: Clue) {
  const labels = [...readMembers(error, "errorLabels"), ...readMembers(read(error, "errorResponse"), "errorLabels")];
  if (labels.some((label) => TRY_AGAIN.includes(label as string))) return "transient";
  const number = readNumber(error, "code") ?? readPath(error, "errorResponse", "code");
  return NUMBERS.get(String(number)) ?? classOfWord(readText(error, "codeName") ?? "");
}
