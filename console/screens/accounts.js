import { sendJson } from '../lib/api.js'
import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { uriEncode } from '../lib/signer.js'
import { Copied } from '../parts/copy.js'
import { Field } from '../parts/form.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { SignedDialog } from '../parts/signed.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/time.js'

const PATH = '/-/accounts/v1'

/** The accounts of the embedded gateway. */
export function Accounts() {
  const accounts = usePages({ path: PATH, query: { 'max-items': 200 } }, 'Accounts')
  const [dialog, setDialog] = useState()
  const open = (View, account) => setDialog({ View, account })
  const done = (text) => {
    notify(text)
    accounts.reload()
  }
  const actions = html`<button type="button" onClick=${accounts.reload}>Refresh</button>
    <button type="button" class="main" onClick=${() => open(Add)}>Add account</button>`
  return html`<${Page} title="Accounts" actions=${actions}>
    <p class="quiet">Buckets, deals and wallets belong to an account of the gateway. A key pair acts as one of them.</p>
    <${Loaded}
      of=${accounts}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Accounts" rows=${rows} keyOf=${({ AccessKey }) => AccessKey} columns=${columns} menu=${menuWith(open)} />
        <${PageLinks} next=${next} />`}
    />
    ${dialog && html`<${dialog.View} of=${dialog.account} done=${done} onClose=${() => setDialog(undefined)} />`}
  <//>`
}

const columns = [
  {
    name: 'Access key',
    by: ({ AccessKey }) => AccessKey,
    cell: ({ AccessKey, Own }) => html`<${Name} text=${AccessKey} />${Own ? ' (of the server)' : ''}`,
  },
  { name: 'Name', by: (account) => account.Name, cell: (account) => html`<${Name} text=${account.Name} />` },
  { name: 'Buckets', by: ({ Buckets }) => Buckets, number: true, cell: ({ Buckets }) => Buckets },
  { name: 'Stored', by: ({ Stored }) => Stored.Bytes, cell: storedWords },
  { name: 'Added', by: ({ Created }) => Created, cell: ({ Created }) => html`<${Time} of=${Created} />` },
  {
    name: 'Canonical id',
    cell: ({ CanonicalId }) => html`<${Copied} text=${CanonicalId} what="the canonical id" />`,
  },
]

function menuWith(open) {
  return {
    label: ({ AccessKey }) => `Actions on ${visibleText(AccessKey)}`,
    items: (account) => [
      { text: 'Quota…', action: () => open(Quota, account) },
      { text: 'New secret…', action: () => open(Rotate, account) },
      !account.Own && { text: 'Remove…', danger: true, action: () => open(Remove, account) },
    ],
  }
}

function storedWords({ Stored: { Bytes, Objects }, Quota = {} }) {
  const most = [
    Quota.Bytes !== undefined && formatBytes(Quota.Bytes),
    Quota.Objects !== undefined && formatCount(Quota.Objects, 'object'),
    Quota.Uploads !== undefined && formatCount(Quota.Uploads, 'upload in parts', 'uploads in parts'),
  ].filter(Boolean)
  const bound = most.length > 0 ? `at most ${most.join(', ')}` : 'no quota'
  const stored = `${formatBytes(Bytes)}, ${formatCount(Objects, 'object')};`
  return html`<span class="amount">${stored}</span> <span class="amount">${bound}</span>`
}

/** What may be bounded, as the call names it. */
const BOUNDS = [
  ['Bytes', 'Bytes'],
  ['Objects', 'Objects'],
  ['Uploads', 'Uploads in parts at the same time'],
]

function Quota({ of: { AccessKey, Quota: saved }, done, onClose }) {
  const action = async (client, values, signal) => {
    // The others stay as they are by now: another program may have changed them.
    const json = Object.fromEntries(
      BOUNDS.map(([name]) => [name, values.get(`quota-${name}`)])
        .filter(([name, text]) => text !== String(saved[name] ?? ''))
        .map(([name, text]) => [name, text === '' ? null : Number(text)]),
    )
    await sendJson(client, { path: `${PATH}/${uriEncode(AccessKey)}/quota`, json, signal })
    done(`The quota of ${AccessKey} was saved.`)
  }
  return html`<${SignedDialog} title="Quota" submit="Save" action=${action} onClose=${onClose}>
    <p>The most that the account <strong><${Name} text=${AccessKey} /></strong> may have in all of its buckets. Empty: no bound. What is stored stays.</p>
    ${BOUNDS.map(([name, label]) => html`<${Field} label=${label} input=${{ name: `quota-${name}`, type: 'number', min: 0, max: 999_999_999_999_999, defaultValue: saved[name] }} />`)}
  <//>`
}

function secretOf({ AccessKey, SecretKey }, title) {
  return {
    title,
    facts: [
      ['ACCESS_KEY', AccessKey],
      ['SECRET_KEY', SecretKey],
    ],
    note: 'It is for the gateway itself. Clients of S3 need a key pair that acts as the account.',
  }
}

function Add({ done, onClose }) {
  const action = async (client, values, signal) => {
    const id = values.get('account-id').trim()
    const path = `${PATH}/${uriEncode(id)}`
    const made = await sendJson(client, { path, json: { Name: values.get('account-name') }, signal })
    done(`The account ${id} was added.`)
    return secretOf(made, 'New account')
  }
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' }
  return html`<${SignedDialog} title="Add account" submit="Add" action=${action} onClose=${onClose}>
    <${Field} label="Access key" hint="3 to 128 characters, and not secret." input=${{ name: 'account-id', required: true, minlength: 3, maxlength: 128, ...plain }} />
    <${Field} label="Name" hint="For people." input=${{ name: 'account-name', maxlength: 128, ...plain }} />
  <//>`
}

function Rotate({ of: { AccessKey }, done, onClose }) {
  const action = async (client, _, signal) => {
    const path = `${PATH}/${uriEncode(AccessKey)}/rotate`
    const made = await sendJson(client, { path, json: {}, signal })
    done(`The account ${AccessKey} has another secret.`)
    return secretOf(made, 'New secret')
  }
  return html`<${SignedDialog} title="New secret" submit="Replace the secret" danger action=${action} onClose=${onClose}>
    <p>The account <strong><${Name} text=${AccessKey} /></strong> gets another secret, and so do the key pairs here that act as it. Its tokens and share links end at once. This cannot be undone.</p>
  <//>`
}

function Remove({ of: { AccessKey }, done, onClose }) {
  const action = async (client, _, signal) => {
    const path = `${PATH}/${uriEncode(AccessKey)}/remove`
    const { Keys } = await sendJson(client, { path, json: {}, signal })
    const rest = Keys.length > 0 ? ` These key pairs no longer work: ${Keys.join(', ')}.` : ''
    done(`The account ${AccessKey} was removed.${rest}`)
  }
  return html`<${SignedDialog} title="Remove account" submit="Remove" danger action=${action} onClose=${onClose}>
    <p>The account <strong><${Name} text=${AccessKey} /></strong> is removed, with its tokens and share links. Its deals and its wallet stay on the disk. An account that owns a bucket stays. This cannot be undone.</p>
  <//>`
}
