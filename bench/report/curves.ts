export interface Curve {
  readonly name: string
  /** Both above 0. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Chart {
  readonly title: string
  readonly x: string
  readonly y: string
  readonly curves: readonly Curve[]
  /** Where the axis has no place for 0, this x stands for it. */
  readonly zero?: number
}

const WIDTH = 720
const HEIGHT = 360
const LEFT = 70
const TOP = 40
const PLOT = { width: 420, height: 260 }
/** Told apart also without colours, by the forms of their points. */
const COLOURS = ['#0b6bcb', '#c4314b', '#1a7f37', '#8250df', '#bf8700', '#57606a', '#0a7ea4', '#953800']

/** Curves over two logarithmic axes, as SVG. */
export function drawCurves({ title, x, y, curves, zero }: Chart): string {
  const points = curves.flatMap((curve) => curve.points)
  const across = axis(points.map(([at]) => at))
  const up = axis(points.map(([, value]) => value))
  const px = (at: number) => round(LEFT + across.of(at) * PLOT.width)
  const py = (value: number) => round(TOP + (1 - up.of(value)) * PLOT.height)
  const bottom = TOP + PLOT.height
  const right = LEFT + PLOT.width
  const lines = [
    ...across.ticks.flatMap((at) => [
      `<path class="grid" d="M${px(at)} ${TOP}V${bottom}"/>`,
      `<text x="${px(at)}" y="${bottom + 18}" text-anchor="middle">${at === zero ? '0' : short(at)}</text>`,
    ]),
    ...up.ticks.flatMap((value) => [
      `<path class="grid" d="M${LEFT} ${py(value)}H${right}"/>`,
      `<text x="${LEFT - 8}" y="${py(value) + 4}" text-anchor="end">${short(value)}</text>`,
    ]),
    ...curves.flatMap((curve, i) => {
      const colour = COLOURS[i % COLOURS.length]
      const at = TOP + 14 + i * 20
      return [
        `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${curve.points.map(([a, b]) => `${px(a)},${py(b)}`).join(' ')}"/>`,
        ...curve.points.map(([a, b]) => mark(i, px(a), py(b), colour)),
        mark(i, right + 20, at, colour),
        `<text x="${right + 32}" y="${at + 4}">${escaped(curve.name)}</text>`,
      ]
    }),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>${escaped(title)}</title>
<style>.grid{stroke:#d0d7de;stroke-width:1}</style>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="24" font-size="14">${escaped(title)}</text>
${lines.join('\n')}
<text x="${LEFT + PLOT.width / 2}" y="${HEIGHT - 16}" text-anchor="middle">${escaped(x)}</text>
<text transform="translate(16 ${TOP + PLOT.height / 2}) rotate(-90)" text-anchor="middle">${escaped(y)}</text>
</svg>
`
}

/** From the power of ten below all values to the one above them. */
function axis(values: readonly number[]): { of(value: number): number; ticks: number[] } {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))
  return {
    of: (value) => (Math.log10(value) - low) / (high - low),
    ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)),
  }
}

function mark(i: number, x: number, y: number, colour: string | undefined): string {
  if (i % 2 === 0) return `<circle cx="${x}" cy="${y}" r="3.5" fill="${colour}"/>`
  return `<rect x="${round(x - 3.5)}" y="${round(y - 3.5)}" width="7" height="7" fill="${colour}"/>`
}

/** 1k, 10M, 0.1. */
function short(value: number): string {
  const units = ['', 'k', 'M', 'G']
  const unit = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log10(value) / 3 + 1e-9)))
  return `${Number((value / 1000 ** unit).toPrecision(3))}${units[unit]}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
