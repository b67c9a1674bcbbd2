// Draws the Grafana board as an SVG from the series that `npm run prove -- monitoring` has read back from Prometheus, so
// that the guide shows what a bad day looks like and not an invented one.
//   REDRIVE_PROVE_PICTURE=day.json npm run prove -- monitoring && node scripts/board-picture.mjs day.json
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

const [WIDTH, HEIGHT, GAP, COLUMNS, TOP] = [300, 150, 10, 4, 34];
const COLOURS = ["#3d7ed9", "#d9633d", "#3da35d", "#a05ac2", "#c2a23a", "#4bb3b8", "#c24b7a", "#7a7a7a"];

const shown = (value, unit) => {
  const [suffix, scaled] = unit === "percentunit" ? ["%", value * 100] : [{ s: "s", ops: "/s" }[unit] ?? "", value];
  const digits = Math.abs(scaled) >= 100 || Number.isInteger(scaled) ? 0 : Math.abs(scaled) >= 1 ? 1 : 3;
  return `${Number(scaled.toFixed(digits))}${suffix}`;
};
const safe = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const nameOf = (metric) => Object.values(metric).join(" ") || "all";

/** One panel: its lines over the time of the day, the outage behind them, and a legend. */
function panel({ title, unit, series }, { from, to, outage, kill }, at) {
  const [x, y] = [(at % COLUMNS) * (WIDTH + GAP) + GAP, Math.floor(at / COLUMNS) * (HEIGHT + GAP) + TOP];
  const plot = { x: x + 40, y: y + 24, w: WIDTH - 50, h: HEIGHT - 58 };
  const points = series.map(({ values }) =>
    values.map(([time, value]) => [time, Number(value)]).filter(([, value]) => Number.isFinite(value)),
  );
  const most = Math.max(unit === "percentunit" ? 1 : 0, ...points.flat().map(([, value]) => value)) || 1;
  const px = (time) => (plot.x + ((time - from) / (to - from)) * plot.w).toFixed(1);
  const py = (value) => (plot.y + plot.h - (value / most) * plot.h).toFixed(1);
  const share = (part) => (plot.x + part * plot.w).toFixed(1);
  const [begin, end] = outage;
  const lines = points.map((line, n) => {
    const steps = line.map(([time, value]) => `${px(time)},${py(value)}`).join(" ");
    return `<polyline points="${steps}" fill="none" stroke="${COLOURS[n % COLOURS.length]}" stroke-width="1.5"/>`;
  });
  const legend = series.slice(0, 5).map(({ metric }, n) => {
    const colour = COLOURS[n % COLOURS.length];
    return `<tspan fill="${colour}">${safe(nameOf(metric))}</tspan> `;
  });
  return `<g><rect x="${x}" y="${y}" width="${WIDTH}" height="${HEIGHT}" rx="4" fill="#ffffff" stroke="#d5d8dd"/>
<text x="${x + 10}" y="${y + 16}" font-weight="600">${safe(title)}</text>
<rect x="${share(begin)}" y="${plot.y}" width="${((end - begin) * plot.w).toFixed(1)}" height="${plot.h}" fill="#f7e3dc"/>
<line x1="${share(kill)}" x2="${share(kill)}" y1="${plot.y}" y2="${plot.y + plot.h}" stroke="#999" stroke-dasharray="3 3"/>
<text x="${plot.x - 4}" y="${plot.y + 8}" text-anchor="end" fill="#666">${shown(most, unit)}</text>
<text x="${plot.x - 4}" y="${plot.y + plot.h}" text-anchor="end" fill="#666">${shown(0, unit)}</text>
${lines.join("\n")}
<text x="${x + 10}" y="${y + HEIGHT - 12}">${legend.join("")}</text></g>`;
}

const [file] = process.argv.slice(2);
if (!file) throw new Error("Name the file that the proof has written.");
const day = JSON.parse(readFileSync(file, "utf8"));
const height = Math.ceil(day.panels.length / COLUMNS) * (HEIGHT + GAP) + TOP;
const width = COLUMNS * (WIDTH + GAP) + GAP;
const minutes = ((day.to - day.from) / 60).toFixed(1);
const head = `The board after ${minutes} minutes of a bad day: the service is away where the ground is red, and at the dashed line a worker is killed.`;
const body = day.panels.map((each, at) => panel(each, day, at)).join("\n");
writeFileSync(
  join(root, "docs", "guides", "monitoring-board.svg"),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="10" fill="#222">
<title>${head}</title><rect width="${width}" height="${height}" fill="#f4f5f7"/>
<text x="${GAP}" y="20" font-size="13">${head}</text>
${body}
</svg>
`,
);
