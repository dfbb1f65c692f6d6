import { html, useEffect, useRef, useState } from '../lib/html.js'
import { busy } from '../lib/session.js'
import { Problem } from './load.js'

let last = 0

/** A label with its input. @param input properties of the input; @param hint shown below it */
export function Field({ label, hint, kind = 'input', input, children }) {
  const [id] = useState(() => `field-${++last}`)
  const described = hint ? `${id}-hint` : undefined
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <${kind} id=${id} aria-describedby=${described} ...${input}>${children}<//>
    ${hint && html`<p class="hint" id=${described}>${hint}</p>`}
  </div>`
}

/** Fields of a form that belong together. @param hint a sentence below the title */
export function Section({ title, hint, children }) {
  return html`<fieldset>
    <legend>${title}</legend>
    ${hint && html`<p class="hint">${hint}</p>`} ${children}
  </fieldset>`
}

/** A box with its label. */
export function Check({ label, hint, input }) {
  const [id] = useState(() => `check-${++last}`)
  return html`<div class="field check">
    <input type="checkbox" id=${id} aria-describedby=${hint ? `${id}-hint` : undefined} ...${input} />
    <label for=${id}>${label}</label>
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`
}

/**
 * A form that does something once for each submission, and shows why it failed.
 * @param action takes the values of the named inputs, as a FormData, and an AbortSignal, which counts from when the form
 *   is removed; what it throws is shown
 * @param submit text of its button; @param danger for what cannot be undone; @param onCancel adds a button
 */
export function Form({ action, submit, danger, disabled, onCancel, children }) {
  const [state, setState] = useState({})
  const abort = useRef()
  useEffect(() => () => abort.current?.abort(), [])
  const running = useRef(false)
  const onSubmit = async (event) => {
    event.preventDefault()
    // Not `state`: a second click may come before the first one is shown.
    if (running.current) return
    running.current = true
    setState({ running: true })
    abort.current = new AbortController()
    busy.value++
    try {
      await action(new FormData(event.target), abort.current.signal)
      setState({})
    } catch (error) {
      setState({ error })
    } finally {
      running.current = false
      busy.value--
    }
  }
  return html`<form onSubmit=${onSubmit}>
    ${children} ${state.error && html`<${Problem} error=${state.error} />`}
    <div class="buttons">
      <button class=${danger ? 'danger' : 'main'} disabled=${disabled || state.running}>
        ${state.running ? 'Working…' : submit}
      </button>
      ${onCancel && html`<button type="button" onClick=${onCancel}>${state.running ? 'Stop' : 'Cancel'}</button>`}
    </div>
  </form>`
}
