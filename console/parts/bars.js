import { html } from '../lib/html.js'

const WIDTH = 720
const HEIGHT = 80

/**
 * A row of bars over time; its numbers stand in a table elsewhere on the screen.
 * @param values numbers, oldest first; @param label says what they are, with their largest
 */
export function Bars({ values, label }) {
  const most = Math.max(1, ...values)
  const step = WIDTH / Math.max(1, values.length)
  return html`<svg class="bars" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}>
    ${values.map((value, i) => {
      const height = value === 0 ? 0 : Math.max(1, (HEIGHT * value) / most)
      return html`<rect x=${i * step} y=${HEIGHT - height} width=${Math.max(0.5, step - 0.5)} height=${height} />`
    })}
  </svg>`
}
