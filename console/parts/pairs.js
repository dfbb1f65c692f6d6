import { html, useEffect, useState } from '../lib/html.js'
import { Form } from './form.js'

/**
 * Names with values, to be changed and saved together.
 * @param pairs [[name, value]] as they are saved; @param word what one of them is; @param save takes the new ones
 */
export function PairsForm({ pairs, word, save }) {
  const [rows, setRows] = useState(pairs)
  useEffect(() => setRows(pairs), [pairs])
  return html`<${Form} action=${() => save(rows)} submit=${`Save ${word}s`}>
    ${rows.length === 0 && html`<p class="quiet">There is no ${word}.</p>`}
    <${Pairs} rows=${rows} setRows=${setRows} word=${word} />
  <//>`
}

/** The inputs of names with values, in a form also by the names `NAME` and `VALUE`. */
export function Pairs({ rows, setRows, word }) {
  const change = (at, place, text) =>
    setRows(rows.map((row, i) => (i === at ? row.map((old, j) => (j === place ? text : old)) : row)))
  const plain = { autocomplete: 'off', spellcheck: false }
  return html`${rows.map(
    ([name, value], i) => html`<div class="pair">
        <input name="NAME" aria-label=${`Name of ${word} ${i + 1}`} value=${name} required onInput=${(event) => change(i, 0, event.target.value)} ...${plain} />
        <input name="VALUE" aria-label=${`Value of ${word} ${i + 1}`} value=${value} onInput=${(event) => change(i, 1, event.target.value)} ...${plain} />
        <button type="button" onClick=${() => setRows(rows.toSpliced(i, 1))} aria-label=${`Remove ${word} ${i + 1}`}>Remove</button>
      </div>`,
  )}
    <button type="button" onClick=${() => setRows([...rows, ['', '']])}>Add ${word}</button>`
}
