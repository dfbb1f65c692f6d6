import { html } from '../lib/html.js'
import { Name } from './name.js'

/** Shape and colour beside the word of a state, for those who look for one kind in a long table. */
const SHAPES = [
  [/^not public/i, '○', ''],
  [/^public/i, '◉', 'wait'],
  [/^(off|disabled|not encrypted)/i, '○', ''],
  [/^(on\b|enabled|encrypted)/i, '●', 'good'],
  [/fail|error|reject|refused|slashed|expired|not found/i, '✕', 'bad'],
  [/complete|active$|ready|works|sealed|allowed/i, '●', 'good'],
  [/unknown|cancel/i, '?', ''],
]

/** A state as its word, with a shape: a colour alone would not be seen by all. */
export function State({ of }) {
  const [, shape, kind] = SHAPES.find(([words]) => words.test(of ?? '')) ?? [undefined, '◐', 'wait']
  return html`<span class=${`state ${kind}`}><span aria-hidden="true">${shape}</span> <${Name} text=${of ?? 'not known'} /></span>`
}

/**
 * A word that marks a thing, such as `Locked`.
 * @param kind `good`, `bad` or `wait` (needs attention); @param shape a character before the word
 */
export function Badge({ kind = '', shape, children }) {
  return html`<span class=${`badge ${kind}`}>${shape && html`<span aria-hidden="true">${shape}</span>`} ${children}</span>`
}
