import { html } from '../lib/html.js'
import { remedies, wordOf } from '../lib/words.js'
import { Copied } from './copy.js'
import { Empty } from './empty.js'
import { Loaded } from './load.js'
import { Name } from './name.js'
import { State } from './state.js'

/** A state in plain words. The title says what it means, and the word of the service itself. @param kind of lib/words.js */
export function Known({ kind, of }) {
  const known = of && wordOf(kind, of)
  if (!known) return html`<${State} of=${of} />`
  return html`<span class="known" title=${`${known.says} (${of})`}><${State} of=${known.name} /></span>`
}

/** A state as facts: its name, what it means, and the word of the service. */
export function stateFacts(kind, state) {
  const known = state && wordOf(kind, state)
  return [
    ['State', html`<${Known} kind=${kind} of=${state} />`],
    ['This means', known?.says],
    ['Reported as', known && known.name !== state ? html`<code><${Name} text=${state} /></code>` : undefined],
  ]
}

/** The choices of a filter by state, each with its plain name; states of the same name follow one another. */
export function stateOptions(kind, states, chosen) {
  const named = states.map((state) => ({ state, name: wordOf(kind, state)?.name ?? state }))
  const twice = (name) => named.filter((other) => other.name === name).length > 1
  return named.map(
    ({ state, name }) =>
      html`<option value=${state} selected=${state === chosen}>${twice(name) ? `${name} (${state})` : name}</option>`,
  )
}

/**
 * What was loaded, as `Loaded` shows it; a refusal that names calls of the server becomes a sentence with a way on.
 * @param ways by code of the error, what can be done: a button, a link or a `Command`
 */
export function Reached({ of, show, ways = {} }) {
  const says = of.value === undefined && of.error && remedies[of.error.code]
  if (!says) return html`<${Loaded} of=${of} show=${show} />`
  const again = html`<button type="button" onClick=${of.reload}>Try again</button>`
  return html`<${Empty} title=${says} actions=${ways[of.error.code] ?? again}>
    <span class="quiet"><${Name} text=${of.error.message} /> (<${Name} text=${of.error.code} />)</span>
  <//>`
}

/** A command to be run where the server is. @param before says what for */
export function Command({ text, before }) {
  return html`<span>${before} <${Copied} text=${text} what="the command" /></span>`
}
