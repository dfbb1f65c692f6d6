import { sendJson } from '../lib/api.js'
import { formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { uriEncode } from '../lib/signer.js'
import { Field } from '../parts/form.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { PageLinks, usePages } from '../parts/pages.js'
import { RightsFields, rightsIn } from '../parts/rights.js'
import { SignedDialog } from '../parts/signed.js'
import { Facts, Table } from '../parts/table.js'
import { ManagedTabs } from '../parts/tabs.js'

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
  return html`<${Page} title="Keys and accounts">
    <${ManagedTabs} />
    <div class="buttons">
      <button type="button" class="main" onClick=${() => open(Add)}>Add key pair</button>
      <button type="button" onClick=${keys.reload}>Refresh</button>
    </div>
    <${Loaded}
      of=${keys}
      show=${({
        rows,
        next,
        answer,
      }) => html`<${Facts} facts=${[['Owner', html`<${Name} text=${answer.Owner} />`], ['Others', `${formatCount(rows.length, 'key pair')}${next ? ' on this page' : ''}`]]} />
        <p class="quiet">The owner has all rights. Its key pair is changed by the options of the server alone.</p>
        <${Table} caption="Key pairs" rows=${rows} keyOf=${({ AccessKeyId }) => AccessKeyId} columns=${columnsWith(open)} empty="There is no key pair besides that of the owner." />
        <${PageLinks} next=${next} />`}
    />
    ${dialog && html`<${dialog.View} of=${dialog.key} done=${done} onClose=${() => setDialog(undefined)} />`}
  <//>`
}

function columnsWith(open) {
  return [
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
    {
      name: 'Change',
      cell: (key) => html`<span class="buttons">
        ${ACTIONS.map(([text, View]) => html`<button type="button" onClick=${() => open(View, key)} aria-label=${`${text} of ${key.AccessKeyId}`}>${text}…</button>`)}
      </span>`,
    },
  ]
}

const ACTIONS = [
  ['Rights', Change],
  ['New secret', Rotate],
  ['Removal', Remove],
]

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
