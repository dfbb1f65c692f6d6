import { send, sendJson } from '../lib/api.js'
import { formatBytes, formatCount } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { readTags, without, writeDocument, writeTags } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { Confirm } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { PairsForm } from '../parts/pairs.js'
import { Facts } from '../parts/table.js'
import { corsRules, lifecycleRules, notificationRules, Rules } from './bucket-rules.js'
import { BucketTabs } from './bucket-tabs.js'
import { DealDefaults } from './deal-defaults.js'
import { pathTo } from './objects.js'
import { Findings, policyFindings, WhoMay } from './policy.js'
import { PublicAccess } from './public-access.js'

/** Documents that configure a bucket, as S3 has them. */
const DOCUMENTS = [
  {
    name: 'Bucket policy',
    query: 'policy',
    absent: 'NoSuchBucketPolicy',
    json: true,
    check: policyFindings,
    Below: WhoMay,
    hint: 'JSON. Says who may do what, also without a signature. It is checked before it is saved.',
  },
  {
    name: 'CORS rules',
    query: 'cors',
    rules: corsRules,
    absent: 'NoSuchCORSConfiguration',
    hint: 'XML. Pages of which origins may read the answers of this bucket. The console needs no rule.',
  },
  {
    name: 'Lifecycle rules',
    query: 'lifecycle',
    rules: lifecycleRules,
    absent: 'NoSuchLifecycleConfiguration',
    hint: 'XML. When objects expire or change their storage class.',
  },
  {
    name: 'Notifications',
    query: 'notification',
    rules: notificationRules,
    // An empty document stands for none.
    none: '<NotificationConfiguration/>',
    isNone: (text) => !/<\w+Configuration>/.test(text),
    hint: 'XML. Which events are sent to which webhook of the server, such as arn:dealgate:webhook:::name.',
  },
  {
    name: 'Ownership of objects',
    query: 'ownershipControls',
    absent: 'OwnershipControlsNotFoundError',
    hint: 'XML. BucketOwnerEnforced switches ACLs off; ObjectWriter, which is so without a document, and BucketOwnerPreferred switch them on.',
  },
]

export function Settings({ params: { bucket } }) {
  return html`<${Crumbs} links=${pathTo(bucket, '')} />
    <${Page} title=${`Settings of ${bucket}`}>
      <${BucketTabs} bucket=${bucket} />
      <${BucketSize} bucket=${bucket} />
      <${PublicAccess} bucket=${bucket} />
      <${Tags} bucket=${bucket} />
      <${DealDefaults} bucket=${bucket} />
      ${DOCUMENTS.map((kind) => html`<${Document} key=${kind.query} bucket=${bucket} kind=${kind} />`)}
    <//>`
}

/** Counts the objects of a bucket and their bytes, a page of the call after the other, and shows its quota, if any. */
function BucketSize({ bucket }) {
  const [counted, setCounted] = useState()
  const action = async (_, signal) => {
    const sums = new Map([['', [0, 0]]])
    const { Quota = {} } = await sendJson(session.value, { bucket, query: { 'x-quota': '' }, signal }).catch(() => ({}))
    let token
    do {
      const query = { 'x-usage': '', 'continuation-token': token }
      const page = await sendJson(session.value, { bucket, query, signal })
      for (const { StorageClass = '', Objects, Bytes } of [page, ...page.Classes]) {
        const [objects, bytes] = sums.get(StorageClass) ?? [0, 0]
        sums.set(StorageClass, [objects + Objects, bytes + Bytes])
      }
      token = page.NextContinuationToken
      setCounted({ sums: [...sums], Quota, done: token === undefined })
    } while (token !== undefined)
  }
  const words = ([name, [objects, bytes]]) => [
    name || (counted.done ? 'In all' : 'So far'),
    `${formatCount(objects, 'object')}, ${formatBytes(bytes)}`,
  ]
  return html`<h2>Size</h2>
    ${counted && html`<div role="status"><${Facts} facts=${counted.sums.map(words).concat(Object.entries(counted.Quota).map(([name, most]) => [`Quota of ${name}`, name === 'Bytes' ? formatBytes(most) : most]))} /></div>`}
    <${Form} action=${action} submit="Count objects and bytes" />`
}

function Tags({ bucket }) {
  const client = session.value
  const tags = useLoaded((signal) => readTags(client, { bucket }, signal), [client, bucket])
  const save = async (pairs) => {
    await writeTags(client, { bucket }, pairs)
    notify('The tags were saved.')
    tags.reload()
  }
  return html`<h2>Tags</h2>
    <${Loaded} of=${tags} show=${(pairs) => html`<${PairsForm} pairs=${pairs} word="tag" save=${save} />`} />`
}

/** A header that belongs to the rules of a lifecycle: a document that is stored without it changes it. */
const SMALLEST = 'x-amz-transition-default-minimum-object-size'

function Document({ bucket, kind }) {
  const { name, query, rules } = kind
  const client = session.value
  const read = async (signal) => {
    const answer = await send(client, { bucket, query: { [query]: '' }, signal }).catch(without(kind.absent))
    const text = answer === undefined ? '' : pretty(await answer.text(), kind)
    return { text: kind.isNone?.(text) ? '' : text, smallest: answer?.headers.get(SMALLEST) }
  }
  const document = useLoaded(read, [client, bucket])
  const done = (what) => {
    notify(`${name}: ${what}.`)
    document.reload()
  }
  /** An empty text removes the document. */
  const store = async (text) => {
    const place = { bucket, headers: document.value.smallest && { [SMALLEST]: document.value.smallest } }
    if (text !== '') await writeDocument(client, place, query, text, kind.json ? 'application/json' : 'application/xml')
    else if (kind.none) await writeDocument(client, place, query, kind.none)
    else await send(client, { method: 'DELETE', bucket, query: { [query]: '' } })
    done(text === '' ? 'removed' : 'saved')
  }
  /** Stores a document that is made from another one. */
  const replace = async (text, saved) => {
    const present = await read()
    if (present.text !== saved || present.smallest !== document.value.smallest) {
      document.reload()
      throw new Error('Another program has changed the rules meanwhile. Close this, and look at them again.')
    }
    await store(text)
  }
  const editor = ({ text }) => html`<${Editor} bucket=${bucket} kind=${kind} saved=${text} store=${store} />`
  const both = (value) => html`<${Rules} kind=${rules} saved=${value.text} store=${replace} />
    <details><summary>Edit ${name} as text</summary>${editor(value)}</details>`
  return html`<h2>${name}</h2>
    <${Loaded} of=${document} show=${rules ? both : editor} />
    ${kind.Below && html`<${kind.Below} bucket=${bucket} />`}`
}

/** Puts each element on a line. An element without content stays so: a line break would become its text. */
function pretty(text, { json }) {
  if (json) return JSON.stringify(JSON.parse(text), null, 2)
  return text.replace(/^<\?xml[^>]*\?>\s*/, '').replace(/>(?=<[^/])/g, '>\n')
}

function Editor({ bucket, kind: { name, hint, check }, saved, store }) {
  const [text, setText] = useState(saved)
  const [removes, setRemoves] = useState(false)
  useEffect(() => setText(saved), [saved])
  const [findings, setFindings] = useState([])
  const save = async (_, signal) => {
    const found = check ? await check(bucket, text, signal) : []
    setFindings(found)
    if (found.length === 0) await store(text)
  }
  const storeAnyway = async () => {
    setFindings([])
    await store(text)
  }
  const input = {
    value: text,
    spellcheck: false,
    autocomplete: 'off',
    required: true,
    onInput: (event) => {
      setText(event.target.value)
      setFindings([])
    },
  }
  return html`<${Form} action=${save} submit=${`Save ${name}`} disabled=${text === saved}>
      <${Field} label=${`${name}${saved === '' ? ' (there is none)' : ''}`} kind="textarea" hint=${hint} input=${input} />
    <//>
    ${findings.length > 0 && html`<${Findings} findings=${findings} store=${storeAnyway} />`}
    ${saved !== '' && html`<button type="button" class="danger" onClick=${() => setRemoves(true)}>Remove ${name}</button>`}
    ${
      removes &&
      html`<${Confirm} title=${`Remove ${name}`} submit="Remove" action=${() => store('')} onClose=${() => setRemoves(false)}>
        <p>To undo this, save the text again: copy it first.</p>
        <pre tabindex="0" role="region" aria-label="What is removed">${saved}</pre>
      <//>`
    }`
}
