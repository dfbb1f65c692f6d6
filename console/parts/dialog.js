import { visibleText } from '../lib/format.js'
import { html, useEffect, useRef, useState } from '../lib/html.js'
import { Field, Form } from './form.js'
import { Name } from './name.js'

/** Opens a `dialog` element as long as it is there, and returns the focus then. @returns its ref */
export function useModal() {
  const ref = useRef(null)
  useEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog.showModal()
    return () => {
      dialog.close()
      // The browser itself forgets where the focus was if another dialog takes the place of this one.
      before?.focus()
    }
  }, [])
  return ref
}

/**
 * A dialog of the browser: it keeps the focus and returns it at its end, and Escape closes it.
 * @param wide for tables
 */
export function Dialog({ title, wide, onClose, children }) {
  const ref = useModal()
  // The event comes later, when another dialog may be open.
  const closed = ({ target }) => target.isConnected && onClose()
  return html`<dialog ref=${ref} class=${wide ? 'wide' : undefined} onClose=${closed} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`
}

/**
 * Asks before something is removed, or costs money.
 * @param word what has to be typed; without it, a button is enough
 * @param action takes an AbortSignal, which counts from when the dialog is closed
 */
export function Confirm({ title, word, submit, action, onClose, children }) {
  const [typed, setTyped] = useState('')
  const done = async (_, signal) => {
    await action(signal)
    if (!signal.aborted) onClose()
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
