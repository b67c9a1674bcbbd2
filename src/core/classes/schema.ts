// Validators of values: ajv, zod, joi, yup, valibot, superstruct, TypeBox, class-validator, protobufjs, and the lists of findings
// that some of them leave to be thrown as they are.

import { read, readMembers, readText } from "../error-shape.ts";
import { type Family, table } from "./clue.ts";

const NAMES = table({
  validation: `ZodError $ZodError ValidationError ValiError SchemaError StructError TraversalError ArkErrors ArkError
    AssertError TransformDecodeCheckError TransformEncodeCheckError TypeGuardError DecodeError YAMLParseError
    RuntypeError DecoderError TypeBoxError MissingRefError SchemaValidationError JsonSchemaValidationError
    AggregateAjvError ResponseValidationError`,
});

/** Validators. */
export const schema: Family = ({ error, name, type, message, code }) => {
  const named = NAMES.get(name) ?? NAMES.get(type);
  if (named !== undefined) return named;
  if (read(error, "ajv") === true || read(error, "isJoi") === true || code === "FST_ERR_VALIDATION")
    return "validation";
  if (name === "ProtocolError" && read(error, "instance") !== undefined) return "validation";
  if (/^(?:schema is invalid: |strict mode: |no schema with key or ref )/.test(message)) return "validation";
  const first = readMembers({ list: error }, "list")[0];
  const isFinding =
    (readText(first, "keyword") !== undefined && read(first, "params") !== undefined) ||
    (readText(first, "property") !== undefined && read(first, "constraints") !== undefined) ||
    (readText(first, "message") !== undefined && Array.isArray(read(first, "path")));
  return isFinding ? "validation" : undefined;
};
