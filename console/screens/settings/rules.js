import { html, useState } from '../../lib/html.js'
import { Element, parseXml } from '../../lib/xml.js'
import { Confirm, Dialog } from '../../parts/dialog.js'
import { Empty } from '../../parts/empty.js'
import { Form } from '../../parts/form.js'
import { Table } from '../../parts/table.js'
import { indented, parsed, textOf } from './documents.js'
import { textsOf } from './inputs.js'

/** A column of the texts of one element. */
export const listed = (name, element) => ({ name, cell: (rule) => textsOf(rule, element).join(', ') })

/** How the rules of a document of XML are listed, replaced and shown. */
const XML = {
  list: (kind, root) => root.children.filter(({ name }) => kind.names.includes(name)),
  with: (root, old, made) => {
    root.children = old ? root.children.flatMap((one) => (one === old ? made : one)) : [...root.children, ...made]
  },
  copy: (rule) => parseXml(String(rule)),
  text: indented,
  create: (kind) => new Element(kind.names[0]),
}

/** The same of a list in a document of JSON. */
const JSON_LIST = {
  list: (kind, value) => [value[kind.member] ?? []].flat(),
  with: (value, old, made, { member }) => {
    const all = [value[member] ?? []].flat()
    value[member] = old ? all.flatMap((one) => (one === old ? made : one)) : [...all, ...made]
  },
  copy: (rule) => structuredClone(rule),
  text: (rule) => JSON.stringify(rule, null, 2),
}

const modelOf = ({ json }) => (json ? JSON_LIST : XML)

/**
 * The rules in a document of a bucket, as a table with a form for each. What a form does not know of a rule stays in it.
 * @param kind with { word, names, columns, Fields, change(rule, values), start?(rules, bucket) }: `names` of the elements
 *   that are rules, `member` in JSON; `change` writes the values of the inputs of `Fields` into a rule; `word` is what
 *   one of them is
 */
export function Rules({ kind, bucket, saved, store }) {
  const [dialog, setDialog] = useState()
  const { list } = modelOf(kind)
  const [root] = useState(() => parsed(kind, saved))
  const rules = list(kind, root)
  const open = (View, rule) => setDialog({ View, rule })
  /** Puts a rule, or none, in the place of one, or at the end. */
  const put = (made, rule) => {
    const changed = saved === '' && kind.json ? { ...kind.empty } : parsed(kind, saved)
    modelOf(kind).with(changed, rule && list(kind, changed)[rules.indexOf(rule)], made, kind)
    return store(list(kind, changed).length === 0 ? '' : textOf(kind, changed))
  }
  const menu = {
    label: (rule) => `Actions on ${kind.word} ${rules.indexOf(rule) + 1}`,
    items: (rule) => [
      { text: 'Change…', action: () => open(Change, rule) },
      { text: 'Remove…', action: () => open(Remove, rule), danger: true },
    ],
  }
  const add = html`<button type="button" onClick=${() => open(Change)}>Add ${kind.word}</button>`
  const empty = html`<${Empty} title=${`There is no ${kind.word}.`} actions=${add} />`
  const close = () => setDialog(undefined)
  return html`<${Table} caption=${`${kind.word}s`} rows=${rules} keyOf=${(rule) => rules.indexOf(rule)} columns=${kind.columns} menu=${menu} empty=${empty} />
    ${rules.length > 0 && html`<div class="buttons">${add}</div>`}
    ${dialog && html`<${dialog.View} kind=${kind} rule=${dialog.rule} rules=${rules} bucket=${bucket} put=${put} onClose=${close} />`}`
}

function Change({ kind, rule, rules, bucket, put, onClose }) {
  const [shown] = useState(() => rule ?? kind.start?.(rules, bucket) ?? XML.create(kind))
  const action = async (values, signal) => {
    const made = modelOf(kind).copy(shown)
    kind.change(made, values)
    await put([made], rule)
    if (!signal.aborted) onClose()
  }
  return html`<${Dialog} title=${`${rule ? 'Change' : 'Add'} ${kind.word}`} onClose=${onClose}>
    <${Form} action=${action} submit="Save" onCancel=${onClose}><${kind.Fields} rule=${shown} /><//>
  <//>`
}

function Remove({ kind, rule, put, onClose }) {
  return html`<${Confirm} title=${`Remove ${kind.word}`} submit="Remove" action=${() => put([], rule)} onClose=${onClose}>
    <p>To undo this, add it again.</p>
    <pre tabindex="0" role="region" aria-label="What is removed">${modelOf(kind).text(rule)}</pre>
  <//>`
}
