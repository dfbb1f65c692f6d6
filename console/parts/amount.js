import { shortAmount, visibleText } from '../lib/format.js'
import { html } from '../lib/html.js'
import { Name } from './name.js'

/** An amount of money on one line, with its first digits; the title has all of them. @param of decimal, as text */
export function Amount({ of, unit }) {
  if (of === undefined || of === null || of === '') return undefined
  const all = String(of)
  const short = shortAmount(all)
  return html`<span class="amount" title=${short === all ? undefined : visibleText(`${all} ${unit ?? ''}`.trim())}>${visibleText(short)}</span>${unit && html` <${Name} text=${unit} />`}`
}
