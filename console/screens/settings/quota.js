import { sendJson } from '../../lib/api.js'
import { formatBytes, formatCount } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { Facts } from '../../parts/table.js'
import { Counted } from './counted.js'
import { Text } from './inputs.js'
import { Single } from './single.js'

/** Of quotas in a form. */
const MIB = 1024 * 1024

/** The inputs of a quota. @param quota { Bytes?, Objects? } */
export function QuotaFields({ quota = {} }) {
  const mib = quota.Bytes === undefined ? undefined : quota.Bytes / MIB
  return html`<div class="columns">
    <${Text} label="At most MiB" hint="Empty: no bound." name="MiB" type="number" min="0" step="any" defaultValue=${mib} />
    <${Text} label="At most objects" hint="All versions count, and delete markers." name="Objects" type="number" min="0" defaultValue=${quota.Objects} />
  </div>`
}

export function quotaOf(values) {
  const number = (name) => (values.get(name).trim() === '' ? undefined : Number(values.get(name)))
  const [mib, objects] = [number('MiB'), number('Objects')]
  return {
    ...(mib !== undefined && { Bytes: Math.round(mib * MIB) }),
    ...(objects !== undefined && { Objects: objects }),
  }
}

function used({ Stored, Quota }) {
  const of = (text, bound) => (bound ? `${text} of ${bound}` : text)
  return [
    ['Stored', of(formatBytes(Stored.Bytes), Quota.Bytes !== undefined && formatBytes(Quota.Bytes))],
    ['All versions', of(formatCount(Stored.Objects, 'object'), Quota.Objects?.toLocaleString())],
  ]
}

/** What a bucket may have, and what counts for that: the embedded gateway keeps these numbers. */
export const quota = {
  name: 'Quota and size',
  query: 'x-quota',
  call: true,
  json: true,
  stays: true,
  shown: ({ Quota }) => Quota,
  // null ends a bound; a member that is absent would stay.
  stored: ({ Bytes = null, Objects = null, ...others }) => ({ Bytes, Objects, ...others }),
  hint: 'Uploads beyond it are refused. What is there stays.',
  View: Single,
  Fields: ({ value, answer }) => html`<${Facts} facts=${used(answer)} /><${QuotaFields} quota=${value} />`,
  change: (_, values) => quotaOf(values),
}

/** Counts the objects of a bucket and their bytes by storage class, on the server. */
export function CountedClasses({ bucket }) {
  const page = async (token, signal) => {
    const query = { 'x-usage': '', 'continuation-token': token }
    const answer = await sendJson(session.value, { bucket, query, signal })
    const part = new Map([answer, ...answer.Classes].map((one) => [one.StorageClass ?? '', [one.Objects, one.Bytes]]))
    return { part, next: answer.NextContinuationToken }
  }
  const add = (sum, part) => {
    const all = new Map(sum)
    for (const [name, [objects, bytes]] of part) {
      const [before, beforeBytes] = all.get(name) ?? [0, 0]
      all.set(name, [before + objects, beforeBytes + bytes])
    }
    return all
  }
  const show = (sum, done) => {
    const facts = [...sum].map(([name, [objects, bytes]]) => [
      name || (done ? 'In all' : 'So far'),
      `${formatCount(objects, 'object')}, ${formatBytes(bytes)}`,
    ])
    return html`<${Facts} facts=${facts} />`
  }
  return html`<h3>By storage class</h3>
    <p class="hint">The newest versions alone. The server walks through the bucket, 100,000 objects a request.</p>
    <${Counted} submit="Count objects and bytes" page=${page} add=${add} show=${show} />`
}
