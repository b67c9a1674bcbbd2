// MQTT (mqtt.js): the reason code of a refused connection or packet. 1 to 5 are of version 3.1.1, those from 128 on of
// version 5.

import { type Family, table } from "./clue.ts";

const CODES = table({
  authentication: "4 5 134 135 138 140",
  rate_limited: "147 150 151 159",
  transient: "3 128 131 136 137 139 141 142 152 156 160 161",
  validation: "129 130 143 144 149 153",
  permanent: "1 2 132 133 145 146 148 154 155 157 158 162",
});

/** MQTT. */
export const mqtt: Family = ({ name, type, code }) =>
  name === "ErrorWithReasonCode" || type === "ErrorWithReasonCode" ? CODES.get(code) : undefined;
