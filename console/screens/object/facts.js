import { formatBytes, formatCount } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { lockOf } from '../../lib/locks.js'
import { readPartSizes, without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Copied } from '../../parts/copy.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { LockState } from '../../parts/lock.js'
import { Name } from '../../parts/name.js'
import { Facts } from '../../parts/table.js'
import { Time } from '../../parts/time.js'

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
export function Attributes({ facts: { size, type, modified, storageClass, versionId, headers } }) {
  return html`<${Facts}
    facts=${[
      ['Size', size >= 1024 ? `${formatBytes(size)} (${size.toLocaleString()} bytes)` : formatBytes(size)],
      ['Type', html`<${Name} text=${type} />`],
      ['Modified', html`<${Time} of=${modified} exact />`],
      ['Storage class', storageClass],
      ['Version', versionId && html`<${Copied} text=${versionId} what="the id of the version" />`],
      ['Lock', versionId && html`<${LockState} lock=${lockOf(headers)} />`],
    ]}
  />`
}

/** @param place { bucket, key, versionId? } */
export function Details({ place, facts }) {
  const { etag, metadata, checksums, headers } = facts
  const client = session.value
  // A key pair may have the right to read the object alone.
  const read = (signal) =>
    readPartSizes(client, place, signal)
      .catch(without('AccessDenied'))
      .then((sizes) => ({ sizes }))
  const parts = useLoaded(read, [client, place.bucket, place.key, place.versionId])
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
