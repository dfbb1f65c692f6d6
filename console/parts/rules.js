import { html, useState } from '../lib/html.js'
import { Element, parseXml } from '../lib/xml.js'
import { Confirm, Dialog } from './dialog.js'
import { Form } from './form.js'
import { Table } from './table.js'

/**
 * The rules in a document of a bucket, as a table with a form for each. What a form does not know of a rule stays in it.
 * @param kind { word, root, names, columns, Fields, change(rule, values), start?(rules) }: names of the elements that
 *   are rules; `change` writes the values of the inputs of `Fields` into a rule
 * @param saved the document; '' for none
 * @param store takes the new document and the one that it is made from; '' for none
 */
export function Rules({ kind, saved, store }) {
  const [dialog, setDialog] = useState()
  const root = saved === '' ? new Element(kind.root) : parseXml(saved)
  const rules = root.children.filter(({ name }) => kind.names.includes(name))
  const open = (View, rule) => setDialog({ View, rule, rules, root, saved })
  /** Puts a rule, or none, in the place of one, or at the end. */
  const put = (made, { rule, root, saved }) => {
    const all = rule ? root.children.flatMap((one) => (one === rule ? made : one)) : [...root.children, ...made]
    return store(all.length === 0 ? '' : String(new Element(root.name, all, root.attributes)), saved)
  }
  const actions = {
    name: 'Actions',
    cell: (rule) => {
      const number = rules.indexOf(rule) + 1
      return html`<span class="buttons">
        <button type="button" onClick=${() => open(Change, rule)} aria-label=${`Change ${kind.word} ${number}`}>Change…</button>
        <button type="button" class="danger" onClick=${() => open(Remove, rule)} aria-label=${`Remove ${kind.word} ${number}`}>Remove…</button>
      </span>`
    },
  }
  return html`<${Table} caption=${`${kind.word}s`} rows=${rules} keyOf=${(rule) => rules.indexOf(rule)} columns=${[...kind.columns, actions]} empty="There is none." />
    <div class="buttons"><button type="button" onClick=${() => open(Change)}>Add ${kind.word}</button></div>
    ${dialog && html`<${dialog.View} kind=${kind} of=${dialog} put=${put} onClose=${() => setDialog(undefined)} />`}`
}

function Change({ kind, of, put, onClose }) {
  const rule = of.rule ?? kind.start?.(of.rules) ?? new Element(kind.names[0])
  const action = async (values, signal) => {
    const made = parseXml(String(rule))
    kind.change(made, values)
    await put([made], of)
    if (!signal.aborted) onClose()
  }
  return html`<${Dialog} title=${`${of.rule ? 'Change' : 'Add'} ${kind.word}`} onClose=${onClose}>
    <${Form} action=${action} submit="Save" onCancel=${onClose}><${kind.Fields} rule=${rule} /><//>
  <//>`
}

function Remove({ kind, of, put, onClose }) {
  return html`<${Confirm} title=${`Remove ${kind.word}`} submit="Remove" action=${() => put([], of)} onClose=${onClose}>
    <p>To undo this, add it again.</p>
    <pre tabindex="0" role="region" aria-label="What is removed">${String(of.rule).replace(/>(?=<[^/])/g, '>\n')}</pre>
  <//>`
}
