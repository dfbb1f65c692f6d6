import { html } from '../lib/html.js'
import { Name } from './name.js'

/** The shape that accompanies the word of a state, for those who look for one kind in a long table. */
const SHAPES = [
  [/complete|active$|ready|works|sealed|allowed/i, '●'],
  [/fail|error|reject|refused|slashed|expired|not found/i, '✕'],
  [/unknown|cancel/i, '?'],
  [/^public/i, '◉'],
  [/^not public/i, '○'],
]

/** A state as its word, with a shape: a colour alone would not be seen by all. */
export function State({ of }) {
  const [, shape] = SHAPES.find(([words]) => words.test(of ?? '')) ?? [undefined, '◐']
  return html`<span class="state"><span aria-hidden="true">${shape}</span> <${Name} text=${of ?? 'not known'} /></span>`
}
