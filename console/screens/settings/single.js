import { html, useState } from '../../lib/html.js'
import { Confirm } from '../../parts/dialog.js'
import { Form } from '../../parts/form.js'
import { inSentence, parsed, textOf } from './documents.js'

/**
 * The form of a document that has no list of rules. What the form does not know stays as it is.
 * @param kind with `Fields`, which gets { value, bucket }; `change(value, values)`, which writes the values of the named
 *   inputs into the document, or returns another one; and `ask(values, value, bucket)`, which returns
 *   { title, submit, word?, text } for what must be confirmed
 */
export function Single({ kind, bucket, value, saved, store, answer }) {
  const [asked, setAsked] = useState()
  const save = async (values) => {
    const copy = parsed(kind, saved)
    const made = kind.change(copy, values)
    const text = textOf(kind, made === undefined ? copy : made)
    const question = kind.ask?.(values, value, bucket)
    if (question) setAsked({ ...question, store: () => store(text) })
    else await store(text)
  }
  return html`<${Form} action=${save} submit=${`Save ${inSentence(kind.name)}`}>
      <${kind.Fields} value=${value} bucket=${bucket} saved=${saved} answer=${answer} />
    <//>
    ${
      asked &&
      html`<${Confirm} title=${asked.title} submit=${asked.submit} word=${asked.word} action=${asked.store} onClose=${() => setAsked(undefined)}>
        ${asked.text}
      <//>`
    }`
}
