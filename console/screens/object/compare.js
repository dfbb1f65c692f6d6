import { formatBytes, formatMoment } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { describeLock, lockOf } from '../../lib/locks.js'
import { headObject, readTags, without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Dialog } from '../../parts/dialog.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { Name } from '../../parts/name.js'
import { Badge } from '../../parts/state.js'
import { Table } from '../../parts/table.js'

/** Headers of HEAD that are shown by another name, or are about the request alone. */
const ELSEWHERE =
  /^(content-(length|type)|etag|last-modified|accept-ranges|date|connection|keep-alive|vary|x-amz-(request-id|id-2|version-id|checksum-.*|meta-.*|object-lock-.*|storage-class|tagging-count|delete-marker)|access-control-.*|content-security-policy|x-content-type-options|server|strict-transport-security)$/

/** Two versions of an object, attribute by attribute. @param versions of `listVersions`; none is a delete marker */
export function CompareVersions({ bucket, versions, onClose }) {
  const client = session.value
  const [older, newer] = [...versions].sort((one, other) => one.modified - other.modified)
  const read = (signal) => Promise.all([older, newer].map((version) => attributesOf(client, bucket, version, signal)))
  const both = useLoaded(read, [client, bucket, older.versionId, newer.versionId])
  return html`<${Dialog} title="Compare two versions" wide onClose=${onClose}>
    <${Loaded} of=${both} show=${([one, other]) => html`<${Comparison} older=${one} newer=${other} />`} />
    <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div>
  <//>`
}

/** @returns Map of texts by the names of attributes */
async function attributesOf(client, bucket, { key, versionId }, signal) {
  const place = { bucket, key, versionId }
  const [facts, tags] = await Promise.all([
    headObject(client, place, signal),
    readTags(client, place, signal).catch(without('AccessDenied')),
  ])
  const { size, type, modified, etag, storageClass, checksums, metadata, headers } = facts
  return new Map([
    ['Version', versionId],
    ['Modified', formatMoment(modified)],
    ['Size', size >= 1024 ? `${formatBytes(size)} (${size.toLocaleString()} bytes)` : formatBytes(size)],
    ['Type', type],
    ['ETag', etag],
    ['Storage class', storageClass],
    ['Lock', describeLock(lockOf(headers)) ?? 'none'],
    ...checksums.map(([name, value]) => [`Checksum ${name}`, value]),
    ...[...headers].filter(([name]) => !ELSEWHERE.test(name)),
    ...(tags ?? []).map(([name, value]) => [`Tag ${name}`, value]),
    ...metadata.map(([name, value]) => [`Metadata ${name}`, value]),
  ])
}

function Comparison({ older, newer }) {
  const names = [...new Set([...older.keys(), ...newer.keys()])]
  const rows = names.map((name) => ({ name, before: older.get(name), after: newer.get(name) }))
  const differ = rows.filter(({ name, before, after }) => name !== 'Version' && name !== 'Modified' && before !== after)
  return html`<p role="status">
      ${differ.length === 0 ? 'They have the same attributes, but for their times.' : html`They differ in: ${differ.map(({ name }, i) => html`${i > 0 && ', '}<${Name} text=${name} />`)}.`}
    </p>
    <${Table} caption="Attributes of two versions" rows=${rows} keyOf=${({ name }) => name} columns=${COLUMNS} />`
}

const COLUMNS = [
  { name: 'Attribute', cell: ({ name }) => name },
  { name: 'Older', cell: ({ before }) => shownAs(before) },
  { name: 'Newer', cell: ({ after }) => shownAs(after) },
  {
    name: 'Difference',
    cell: ({ before, after }) =>
      before === after ? html`<span class="quiet">same</span>` : html`<${Badge} kind="wait" shape="≠">different<//>`,
  },
]

function shownAs(text) {
  return text === undefined ? html`<span class="quiet">none</span>` : text
}
