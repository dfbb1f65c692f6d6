// The inputs of the forms of settings. They have the names of the elements or members.
import { html } from '../../lib/html.js'
import { Check, Field } from '../../parts/form.js'
import { Name } from '../../parts/name.js'

export const textsOf = (element, name) => element.all(name).map(({ text }) => text)

export function Text({ label, hint, kind, ...input }) {
  return html`<${Field} label=${label} hint=${hint} kind=${kind} input=${{ autocomplete: 'off', spellcheck: false, ...input }} />`
}

/** Texts, one a line. */
export function Lines({ texts, ...more }) {
  return html`<${Text} kind="textarea" rows="2" defaultValue=${texts.join('\n')} ...${more} />`
}

export function linesIn(values, name) {
  return values
    .get(name)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}

/** One text, or none if its input is empty. */
export function one(values, name) {
  return [values.get(name).trim()].filter(Boolean)
}

/** One of some words. @param of [[value, label]] */
export function Choice({ label, hint, of, chosen, ...input }) {
  return html`<${Field} label=${label} hint=${hint} kind="select" input=${input}>
    ${of.map(([value, text]) => html`<option value=${value} selected=${value === chosen}>${text}</option>`)}
  <//>`
}

/** Boxes for what is known, and for what a rule has besides. */
export function Choices({ legend, name, known, chosen }) {
  return html`<fieldset class="choices">
    <legend>${legend}</legend>
    ${[...new Set([...known, ...chosen])].map((value) => html`<${Check} label=${html`<${Name} text=${value} />`} input=${{ name, value, defaultChecked: chosen.includes(value) }} />`)}
  </fieldset>`
}
