import { sendJson } from '../lib/api.js'
import { formatCount, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { uriEncode } from '../lib/signer.js'
import { Empty } from '../parts/empty.js'
import { Check, Field } from '../parts/form.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { SignedDialog } from '../parts/signed.js'
import { Facts, Table } from '../parts/table.js'

const PATH = '/-/keys/v1'

/** All key pairs of the server, with what each may do. */
export function Keys() {
  const keys = usePages({ path: PATH, query: { 'max-items': 200 } }, 'Keys')
  const [dialog, setDialog] = useState()
  const open = (View, key) => setDialog({ View, key })
  const done = (text) => {
    notify(text)
    keys.reload()
  }
  const add = html`<button type="button" class="main" onClick=${() => open(Add)}>Add key pair</button>`
  const actions = html`<button type="button" onClick=${keys.reload}>Refresh</button>${add}`
  return html`<${Page} title="Keys" actions=${actions}>
    <${Loaded}
      of=${keys}
      show=${({
        rows,
        next,
        answer,
      }) => html`<${Facts} facts=${[['Owner', html`<${Name} text=${answer.Owner} />`], ['Others', `${formatCount(rows.length, 'key pair')}${next ? ' on this page' : ''}`]]} />
        <p class="quiet">The owner has all rights. Its key pair is changed by the options of the server alone.</p>
        <${Table} caption="Key pairs" rows=${rows} keyOf=${({ AccessKeyId }) => AccessKeyId} columns=${columns} menu=${menuWith(open)} empty=${html`<${Empty} title="There is no key pair besides that of the owner." actions=${add}>Add one for each program and person, with no more rights than it needs.<//>`} />
        <${PageLinks} next=${next} />`}
    />
    ${dialog && html`<${dialog.View} of=${dialog.key} done=${done} onClose=${() => setDialog(undefined)} />`}
  <//>`
}

const columns = [
  {
    name: 'Access key id',
    by: ({ AccessKeyId }) => AccessKeyId,
    cell: ({ AccessKeyId }) => html`<${Name} text=${AccessKeyId} />`,
  },
  {
    name: 'Account',
    by: ({ Account }) => Account ?? '',
    cell: ({ Account }) => (Account === undefined ? 'of the server' : html`<${Name} text=${Account} />`),
  },
  { name: 'May do', cell: (key) => html`<${May} of=${key} />` },
]

function menuWith(open) {
  return {
    label: ({ AccessKeyId }) => `Actions on ${visibleText(AccessKeyId)}`,
    items: (key) => [
      { text: 'Rights…', action: () => open(Change, key) },
      { text: 'New secret…', action: () => open(Rotate, key) },
      { text: 'Remove…', danger: true, action: () => open(Remove, key) },
    ],
  }
}

function May({ of: { Rights, Actions = [], Policies = [] } }) {
  const lines = [
    ...(Rights ?? []).map(
      ({ Bucket, Prefix = '', Access }) => html`<li>${Access} <${Name} text=${`${Bucket}/${Prefix}`} /></li>`,
    ),
    ...Actions.map((action) => html`<li>call <${Name} text=${action} /></li>`),
    ...Policies.map(
      (policy) =>
        html`<li><details><summary>only what a policy allows</summary><pre><${Name} text=${policy} /></pre></details></li>`,
    ),
  ]
  const all = Rights === undefined && 'all that its account may'
  return html`${all}${lines.length > 0 ? html`<ul>${lines}</ul>` : !all && 'nothing'}`
}

function pathOf({ AccessKeyId }, what) {
  return `${PATH}/${uriEncode(AccessKeyId)}${what ? `/${what}` : ''}`
}

function secretOf({ AccessKeyId, SecretAccessKey }, title) {
  return {
    title,
    facts: [
      ['AWS_ACCESS_KEY_ID', AccessKeyId],
      ['AWS_SECRET_ACCESS_KEY', SecretAccessKey],
    ],
    note: 'A key pair whose secret is lost gets another one by New secret.',
  }
}

function Add({ done, onClose }) {
  const action = async (client, values, signal) => {
    const key = { AccessKeyId: values.get('id').trim() }
    const account = (name) => values.get(name).trim() || undefined
    const json = {
      ...rightsIn(values),
      AccountAccessKey: account('account'),
      AccountSecretKey: account('account-secret'),
    }
    const made = await sendJson(client, { path: pathOf(key), json, signal })
    done(`The key pair ${key.AccessKeyId} was added.`)
    return secretOf(made, 'New key pair')
  }
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' }
  const [id] = useState(() => `DG${crypto.randomUUID().replaceAll('-', '').slice(0, 18).toUpperCase()}`)
  return html`<${SignedDialog} title="Add key pair" submit="Add" action=${action} onClose=${onClose}>
    <${Field} label="Access key id" hint="A name that is not secret, such as who uses it." input=${{ name: 'id', defaultValue: id, required: true, minlength: 3, maxlength: 128, ...plain }} />
    <${RightsFields} of=${{ Rights: [{ Bucket: '', Access: 'read' }] }} />
    <details>
      <summary>Act as another account</summary>
      <${Field} label="Access key of the account" input=${{ name: 'account', ...plain }} />
      <${Field} label="Its secret key" hint="Not needed for an account of the embedded gateway." input=${{ name: 'account-secret', type: 'password', ...plain }} />
    </details>
  <//>`
}

function Change({ of: key, done, onClose }) {
  const action = async (client, values, signal) => {
    await sendJson(client, { path: pathOf(key, 'rights'), json: rightsIn(values), signal })
    done(`The rights of ${key.AccessKeyId} were changed.`)
  }
  return html`<${SignedDialog} title="Change rights" submit="Change" action=${action} onClose=${onClose}>
    <p>What <strong><${Name} text=${key.AccessKeyId} /></strong> may do from its next request on:</p>
    <${RightsFields} of=${key} />
  <//>`
}

function Rotate({ of: key, done, onClose }) {
  const action = async (client, _, signal) => {
    const made = await sendJson(client, { path: pathOf(key, 'rotate'), json: {}, signal })
    done(`The key pair ${key.AccessKeyId} has another secret.`)
    return secretOf(made, 'New secret')
  }
  return html`<${SignedDialog} title="New secret" submit="Replace the secret" danger action=${action} onClose=${onClose}>
    <p><strong><${Name} text=${key.AccessKeyId} /></strong> gets another secret. The present one is refused at once, with its sessions and presigned links. This cannot be undone.</p>
  <//>`
}

function Remove({ of: key, done, onClose }) {
  const action = async (client, _, signal) => {
    await sendJson(client, { path: pathOf(key, 'remove'), json: {}, signal })
    done(`The key pair ${key.AccessKeyId} was removed.`)
  }
  return html`<${SignedDialog} title="Remove key pair" submit="Remove" danger action=${action} onClose=${onClose}>
    <p><strong><${Name} text=${key.AccessKeyId} /></strong> is refused at once, with its sessions and presigned links. Its objects stay. A new key pair can have the same id and rights, but not the same secret.</p>
  <//>`
}

const ACCESS = ['read', 'write', 'readwrite']

/**
 * What a key pair may do: rights by bucket and prefix, calls and policies.
 * @param of { Rights?, Actions?, Policies? }
 */
function RightsFields({ of: { Rights, Actions = [], Policies = [] } }) {
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
function rightsIn(values) {
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
