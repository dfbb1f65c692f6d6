import { visibleText } from '../lib/format.js'
import { html, useEffect, useRef, useState } from '../lib/html.js'
import { Field, Form } from './form.js'
import { Name } from './name.js'

/** A dialog of the browser: it keeps the focus, and Escape closes it. */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(null)
  useEffect(() => {
    ref.current.showModal()
  }, [])
  return html`<dialog ref=${ref} onClose=${onClose} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`
}

/**
 * Asks before something is removed, or costs money.
 * @param word what has to be typed; without it, a button is enough
 */
export function Confirm({ title, word, submit, action, onClose, children }) {
  const [typed, setTyped] = useState('')
  const done = async () => {
    await action()
    onClose()
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${Form} action=${done} submit=${submit} danger disabled=${word !== undefined && typed !== word} onCancel=${onClose}>
      ${children}
      ${
        word !== undefined &&
        html`<${Field}
          label=${html`Type <strong><${Name} text=${word} /></strong> to confirm`}
          input=${{ value: typed, autocomplete: 'off', spellcheck: false, onInput: (event) => setTyped(event.target.value), 'aria-label': `Type ${visibleText(word)} to confirm` }}
        />`
      }
    <//>
  <//>`
}
