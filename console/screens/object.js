import { formatBytes, formatCount, formatTime } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { headObject, readPartSizes, readTags, without, writeTags } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { copyText } from '../parts/copy.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { PairsForm } from '../parts/pairs.js'
import { Facts } from '../parts/table.js'
import { Acl } from './acl.js'
import { DealsOf } from './deals.js'
import { LifeOf } from './life.js'
import { CopyObjects, DeleteObjects, downloadLink, downloadObject } from './object-actions.js'
import { pathTo } from './objects.js'
import { Preview } from './preview.js'

/** One object: what is known about it, and what can be done with it. */
export function ObjectScreen({ params: { bucket }, query }) {
  const key = query.get('key') ?? ''
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    <${Page} title=${`Object ${key}`} heading=${html`<${Name} text=${key} />`}>
      ${
        key !== '' && isReachable(key)
          ? html`<${Known} key=${key} bucket=${bucket} name=${key} folder=${folder} />`
          : html`<p class="problem">
              Browsers remove the parts <code>.</code> and <code>..</code> from every address, so that this console cannot
              request this object, nor one without a name. Use another client of S3.
            </p>`
      }
    <//>`
}

function Known({ bucket, name, folder }) {
  const client = session.value
  const object = useLoaded((signal) => headObject(client, bucket, name, signal), [client, bucket, name])
  const [dialog, setDialog] = useState()
  const done = () => goTo(['buckets', bucket, 'objects'], { prefix: folder })
  const chosen = {
    bucket,
    folder,
    items: [{ name }],
    done,
    refresh: object.reload,
    onClose: () => setDialog(undefined),
  }
  return html`<${Loaded}
      of=${object}
      show=${(facts) => html`<div class="buttons">
          <button type="button" class="main" onClick=${() => downloadObject(bucket, name)}>Download</button>
          <button type="button" onClick=${() => setDialog({ View: CopyObjects })}>Copy or move…</button>
          <button type="button" class="danger" onClick=${() => setDialog({ View: DeleteObjects })}>Delete…</button>
        </div>
        <${Attributes} facts=${facts} />
        <${Preview} bucket=${bucket} name=${name} size=${facts.size} />
        <${Link} bucket=${bucket} name=${name} />
        <${Folded} title="Checksums and metadata"><${Details} bucket=${bucket} name=${name} facts=${facts} /><//>
        <${Folded} title="Edit tags"><${Tags} bucket=${bucket} name=${name} /><//>
        <${Folded} title="Edit rights (ACL)"><${Acl} place=${{ bucket, key: name }} /><//>
        <${DealsOf} bucket=${bucket} name=${name} />
        <${LifeOf} bucket=${bucket} name=${name} facts=${facts} changed=${object.reload} />`}
    />
    ${dialog && html`<${dialog.View} ...${chosen} />`}`
}

const FURTHER = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
  'x-amz-restore',
]

const OF = { FULL_OBJECT: ' of the whole object', COMPOSITE: ' of the checksums of its parts' }

/** What most people look for. */
function Attributes({ facts: { size, type, modified, storageClass } }) {
  return html`<${Facts}
    facts=${[
      ['Size', size >= 1024 ? `${formatBytes(size)} (${size.toLocaleString()} bytes)` : formatBytes(size)],
      ['Type', html`<${Name} text=${type} />`],
      ['Modified', formatTime(modified)],
      ['Storage class', storageClass],
    ]}
  />`
}

function Details({ bucket, name, facts }) {
  const { etag, metadata, checksums, headers } = facts
  const client = session.value
  // A key pair may have the right to read the object alone.
  const read = (signal) =>
    readPartSizes(client, bucket, name, signal)
      .catch(without('AccessDenied'))
      .then((sizes) => ({ sizes }))
  const parts = useLoaded(read, [client, bucket, name])
  const of = OF[headers.get('x-amz-checksum-type')] ?? ''
  const further = FURTHER.filter((header) => headers.has(header)).map((header) => [
    header,
    html`<${Name} text=${headers.get(header)} />`,
  ])
  return html`<${Facts}
      facts=${[
        ['ETag', html`<code>${etag}</code>`],
        ...checksums.map(([name, value]) => [`Checksum ${name}`, html`<code>${value}</code>${of}`]),
        ...further,
      ]}
    />
    <${Loaded} of=${parts} show=${({ sizes }) => sizes && html`<${Facts} facts=${[['Parts', describeParts(sizes)]]} />`} />
    ${
      metadata.length > 0 &&
      html`<h2>Metadata</h2>
        <${Facts} facts=${metadata.map(([name, value]) => [name, html`<${Name} text=${value} />`])} />`
    }`
}

/** Sizes beyond this number are left out: the parts of most uploads have one size, but the last. */
const MOST_SIZES = 4

function describeParts(sizes) {
  const runs = []
  for (const size of sizes) {
    if (runs.at(-1)?.size === size) runs.at(-1).count++
    else runs.push({ size, count: 1 })
  }
  const texts = runs.slice(0, MOST_SIZES).map(({ size, count }) => `${count.toLocaleString()} of ${formatBytes(size)}`)
  return `${formatCount(sizes.length, 'part')}: ${texts.join(', ')}${runs.length > MOST_SIZES ? ', …' : ''}`
}

const TIMES = [
  [300, '5 minutes'],
  [3600, '1 hour'],
  [43_200, '12 hours'],
  [604_800, '7 days'],
]

/** Makes a link by which anybody can download the object. It ends with the session, too. */
function Link({ bucket, name }) {
  const [link, setLink] = useState()
  const { expires } = session.value
  const action = async (values) => {
    const seconds = Math.min(Number(values.get('expires')), Math.floor((expires - Date.now()) / 1000))
    setLink({ url: await downloadLink(bucket, name, seconds), until: Date.now() + seconds * 1000 })
  }
  return html`<h2>Link</h2>
    <${Form} action=${action} submit="Make a link">
      <${Field} label="Valid for" kind="select" input=${{ name: 'expires' }} hint=${`Everyone who has the link can download the object. It ends with this session at the latest: ${formatTime(expires)}.`}>
        ${TIMES.map(([seconds, text]) => html`<option value=${seconds}>${text}</option>`)}
      <//>
    <//>
    ${
      link &&
      html`<${Field} label=${`Link, valid until ${formatTime(link.until)}`} input=${{ value: link.url, readOnly: true, onFocus: (event) => event.target.select() }} />
        <button type="button" onClick=${() => copyText(link.url, 'the link')}>Copy link</button>
        <${LinkCode} link=${link} />`
    }`
}

/** The link for the camera of a telephone. What makes the code is loaded for the first link. */
function LinkCode({ link: { url, until } }) {
  const part = useLoaded(() => import('../parts/qr.js'), [])
  const title = `QR code of the link, valid until ${formatTime(until)}`
  return html`<${Loaded} of=${part} show=${({ QrCode }) => html`<${QrCode} text=${url} title=${title} />`} />`
}

function Tags({ bucket, name }) {
  const client = session.value
  const tags = useLoaded((signal) => readTags(client, { bucket, key: name }, signal), [client, bucket, name])
  const save = async (pairs) => {
    await writeTags(client, { bucket, key: name }, pairs)
    notify('The tags were saved.')
    tags.reload()
  }
  return html`<h2>Tags</h2>
    <${Loaded} of=${tags} show=${(pairs) => html`<${PairsForm} pairs=${pairs} word="tag" save=${save} />`} />`
}
