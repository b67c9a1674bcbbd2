// The plots, loaded when the first one is seen: lines over time, outages shaded, releases marked. uPlot draws; colours come
// from the style sheet, so that they follow light and dark, and each line has a dash of its own beside its colour.
import uPlot from "uplot";

/** A line. */
export interface PlotLine {
  readonly says: string;
  /** The name of a state, whose colour it has. */
  readonly kind: string;
  readonly values: readonly (number | null)[];
  readonly dash?: readonly number[];
  /** Fills between this line and the one before it. */
  readonly isBand?: boolean;
}

/** What a plot shows. */
export interface PlotData {
  /** Epoch milliseconds, or plain numbers with `isTime: false`. */
  readonly at: readonly number[];
  readonly lines: readonly PlotLine[];
  /** Shaded spans; `until` null for one that goes on. */
  readonly outages?: readonly { readonly from: number; readonly until: number | null; readonly says: string }[];
  readonly marks?: readonly { readonly at: number; readonly says: string }[];
  readonly isTime?: boolean;
  readonly isLog?: boolean;
  readonly shown?: (value: number) => string;
}

/** A colour of the style sheet as it is now; a canvas does not know the names. */
function colour(element: HTMLElement, name: string): string {
  element.style.color = `var(--${name})`;
  const found = getComputedStyle(element).color;
  element.style.color = "";
  return found;
}

const pad = (value: number): string => String(value).padStart(2, "0");

/** `14:05`, and the day where the axis covers several. */
function timeText(seconds: number, step: number): string {
  const date = new Date(seconds * 1_000);
  const [hours, minutes] = [pad(date.getHours()), pad(date.getMinutes())];
  return step >= 86_400
    ? `${date.getDate()}.${date.getMonth() + 1}.`
    : step < 60
      ? `${hours}:${minutes}:${pad(date.getSeconds())}`
      : `${hours}:${minutes}`;
}

function shadings(element: HTMLElement, { outages = [], marks = [] }: PlotData): uPlot.Plugin {
  return {
    hooks: {
      drawClear(plot) {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.fillStyle = colour(element, "outage");
        const bound = (ms: number): number =>
          Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(ms / 1_000, "x", true)));
        for (const { from, until } of outages) {
          const [left, right] = [bound(from), bound(until ?? Number.MAX_SAFE_INTEGER)];
          if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
        }
        ctx.strokeStyle = colour(element, "dim");
        ctx.fillStyle = colour(element, "dim");
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        for (const { at, says } of marks) {
          const x = plot.valToPos(at / 1_000, "x", true);
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          ctx.setLineDash([3, 3]);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          const isRight = x > bbox.left + bbox.width * 0.8;
          ctx.textAlign = isRight ? "right" : "left";
          ctx.fillText(`▼ ${says}`.slice(0, 30), x + (isRight ? -4 : 4), bbox.top + 11 * devicePixelRatio);
        }
        ctx.restore();
      },
    },
  };
}

/** Draws into an element; returns how to draw other data and how to end. */
export function drawPlot(element: HTMLElement, first: PlotData, height: number) {
  const axis = {
    stroke: () => colour(element, "dim"),
    grid: { stroke: () => colour(element, "line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const make = (data: PlotData): uPlot => {
    const { isTime = true, isLog = false, shown = String } = data;
    return new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        scales: {
          x: { time: isTime },
          y: isLog ? { distr: 3 } : { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] },
        },
        axes: [
          {
            ...axis,
            size: 26,
            values: (_plot, splits, _axis, _space, step) =>
              splits.map((n) => (isTime ? timeText(n, step) : Number.isInteger(n) ? String(n) : "")),
          },
          {
            ...axis,
            size: 56,
            grid: { ...axis.grid, show: !isLog },
            values: (_plot, splits) => splits.map((n) => (n === null ? "" : shown(n))),
          },
        ],
        series: [
          {},
          ...data.lines.map(({ says, kind, dash }) => ({
            label: says,
            stroke: () => colour(element, kind),
            width: 1.6,
            ...(dash && { dash: [...dash] }),
            points: { show: data.at.length < 20 && says !== "" },
          })),
        ],
        bands: data.lines.flatMap(({ isBand }, at) =>
          isBand ? [{ series: [at + 1, at] as [number, number], fill: () => colour(element, "band") }] : [],
        ),
        plugins: [shadings(element, data)],
      },
      [
        data.at.map((ms) => (isTime ? ms / 1_000 : ms)),
        ...data.lines.map(({ values }) => [...values]),
      ] as uPlot.AlignedData,
      element,
    );
  };
  let plot = make(first);
  let last = first;
  const again = (data: PlotData): void => {
    last = data;
    plot.destroy();
    plot = make(data);
  };
  const resized = new ResizeObserver(() => {
    if (element.clientWidth > 0 && element.clientWidth !== plot.width)
      plot.setSize({ width: element.clientWidth, height });
  });
  resized.observe(element);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = (): void => again(last);
  dark.addEventListener("change", repaint);
  return {
    again,
    end() {
      resized.disconnect();
      dark.removeEventListener("change", repaint);
      plot.destroy();
    },
  };
}
