import { html, useState } from '../lib/html.js'
import { Check, Field } from './form.js'

const ACCESS = ['read', 'write', 'readwrite']

/**
 * What a key pair may do: rights by bucket and prefix, calls and policies.
 * @param of { Rights?, Actions?, Policies? }
 */
export function RightsFields({ of: { Rights, Actions = [], Policies = [] } }) {
  const [all, setAll] = useState(Rights === undefined)
  const [rows, setRows] = useState(() => (Rights ?? []).map((right, id) => ({ ...right, id })))
  const [last, setLast] = useState(rows.length)
  const add = () => {
    setRows([...rows, { Bucket: '', Access: 'read', id: last }])
    setLast(last + 1)
  }
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' }
  return html`<fieldset>
    <legend>May do</legend>
    <${Check} label="All that its account may" input=${{ name: 'all', checked: all, onChange: (event) => setAll(event.target.checked) }} />
    ${
      !all &&
      html`${rows.map(
        ({ id, Bucket, Prefix = '', Access }, i) => html`<div class="pair" key=${id}>
            <select name="access" aria-label=${`Access of right ${i + 1}`}>
              ${ACCESS.map((access) => html`<option value=${access} selected=${access === Access}>${access}</option>`)}
            </select>
            <input name="bucket" aria-label=${`Bucket of right ${i + 1}`} placeholder="bucket, or *" defaultValue=${Bucket} required ...${plain} />
            <input name="prefix" aria-label=${`Prefix of right ${i + 1}`} placeholder="every key" defaultValue=${Prefix} ...${plain} />
            <button type="button" onClick=${() => setRows(rows.toSpliced(i, 1))} aria-label=${`Remove right ${i + 1}`}>Remove</button>
          </div>`,
      )}
        <div class="buttons"><button type="button" onClick=${add}>Add right</button></div>
        <${Field} label="Calls" hint="One a line, such as deal:CreateObjectDeal or pay:*. Reading what the rights cover needs none." kind="textarea" input=${{ name: 'actions', rows: 2, defaultValue: Actions.join('\n'), ...plain }} />`
    }
    <details open=${Policies.length > 0}>
      <summary>Policies</summary>
      <${Field} label="Only what these policies allow" hint="JSON documents as of buckets, without Principal; a list for several." kind="textarea" input=${{ name: 'policies', rows: 4, defaultValue: textOf(Policies), ...plain }} />
    </details>
  </fieldset>`
}

function textOf(policies) {
  const documents = policies.map((policy) => JSON.parse(policy))
  if (documents.length === 0) return ''
  return JSON.stringify(documents.length === 1 ? documents[0] : documents, null, 2)
}

/** What the fields of a form say, as the calls take it. Throws SyntaxError for policies that are not JSON. */
export function rightsIn(values) {
  const prefixes = values.getAll('prefix')
  const access = values.getAll('access')
  const text = values.get('policies').trim()
  const policies = text === '' ? [] : [JSON.parse(text)].flat()
  return {
    ...(values.has('all') && { All: true }),
    ...(!values.has('all') && {
      Rights: values.getAll('bucket').map((bucket, i) => ({
        Bucket: bucket.trim(),
        ...(prefixes[i] && { Prefix: prefixes[i] }),
        Access: access[i],
      })),
      Actions: values.get('actions').split(/\s+/).filter(Boolean),
    }),
    ...(policies.length > 0 && { Policies: policies.map((policy) => JSON.stringify(policy)) }),
  }
}
