import { sendXml } from '../lib/api.js'
import { formatCount, formatMoment } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { readLog } from '../lib/log-lines.js'
import { linkTo } from '../lib/router.js'
import { listObjects } from '../lib/s3.js'
import { readText } from '../lib/s3-text.js'
import { session } from '../lib/session.js'
import { Empty } from '../parts/empty.js'
import { Loaded, Problem, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { Table } from '../parts/table.js'
import { Bytes } from '../parts/time.js'
import { BucketTabs, pathTo } from './bucket-tabs.js'
import { Status } from './requests.js'

/** Objects of the log that are read at once, and bytes of the end of each: the newest lines. */
const OBJECTS = 8
const BYTES = 128 * 1024
/** So many lines are enough, and so many rounds of objects are read for them at most. */
const ENOUGH = 100
const ROUNDS = 5
/** The names of objects begin with their time: those of a day are looked for first, then of a month, then all. */
const DAYS = [1, 31, undefined]
/** Most keys of a folder of the log that are listed. */
const MAX_KEYS = 10_000

/** The access log of a bucket, from the objects of its target. */
export function AccessLog({ params: { bucket } }) {
  const client = session.value
  const log = useLoaded((signal) => objectsOfLog(client, bucket, signal), [client, bucket])
  const actions = html`<button type="button" onClick=${log.reload}>Refresh</button><${Settings} bucket=${bucket} />`
  return html`<${Crumbs} links=${pathTo(bucket, '')} />
    <${Page} title=${`Access log of ${bucket}`} heading=${html`Access log of <${Name} text=${bucket} />`} actions=${actions}>
    <${BucketTabs} bucket=${bucket} />
    <${Loaded} of=${log} show=${(value) => (value.target === undefined ? html`<${None} bucket=${bucket} />` : html`<${Lines} key=${value.keys.at(-1)} ...${value} />`)} />
  <//>`
}

function Settings({ bucket }) {
  return html`<a class="button" href=${linkTo(['buckets', bucket, 'settings', 'events'])}>Settings</a>`
}

function None({ bucket }) {
  const actions = html`<${Settings} bucket=${bucket} />`
  return html`<${Empty} title="This bucket has no access log." actions=${actions}>Its settings say into which bucket the requests to it are written. The lines of some minutes arrive together.<//>`
}

function Lines({ target, prefix, keys }) {
  const client = session.value
  const [state, setState] = useState({ entries: [], read: 0, reading: false })
  const [words, setWords] = useState('')
  const more = async (signal) => {
    setState((old) => ({ ...old, reading: true, error: undefined }))
    try {
      const found = { entries: [], read: state.read, cut: state.cut }
      // A quiet bucket has a few lines in each object: some more are read then.
      for (let round = 0; round < ROUNDS && found.entries.length < ENOUGH && found.read < keys.length; round++) {
        const next = keys.slice(0, keys.length - found.read).slice(-OBJECTS)
        const texts = await Promise.all(
          next.map((key) => readText(client, target, key, { bytes: BYTES, last: true }, signal)),
        )
        for (const { text, whole } of texts)
          found.entries.push(...readLog(whole ? text : text.slice(text.indexOf('\n') + 1)))
        found.read += next.length
        found.cut ||= texts.some(({ whole }) => !whole)
      }
      const entries = [...state.entries, ...found.entries].sort((one, other) => other.time - one.time)
      setState({ ...found, entries, reading: false })
    } catch (error) {
      if (!signal?.aborted) setState((old) => ({ ...old, reading: false, error }))
    }
  }
  useEffect(() => {
    const abort = new AbortController()
    if (keys.length > 0) more(abort.signal)
    return () => abort.abort()
  }, [])
  const wanted = words.toLowerCase()
  const rows = state.entries.filter((entry) => searched(entry).includes(wanted))
  const where = html`<a href=${linkTo(['buckets', target, 'objects'], { prefix })}><${Name} text=${`${target}/${prefix}`} /></a>`
  if (keys.length === 0)
    return html`<${Empty} title="Nothing has been logged yet.">The lines of some minutes arrive together in ${where}.<//>`
  return html`<div class="toolbar">
      <form role="search" onSubmit=${(event) => event.preventDefault()}>
        <input type="search" aria-label="Filter the lines" placeholder="Filter these lines" autocomplete="off" spellcheck=${false} onInput=${({ target: { value } }) => setWords(value)} />
      </form>
      <p class="quiet" role="status">${state.reading ? 'Reading…' : `${formatCount(rows.length, 'line')} of the newest ${formatCount(state.read, 'object')} in `}${!state.reading && where}${state.cut && ' (the last lines of each)'}</p>
    </div>
    ${state.error && html`<${Problem} error=${state.error} retry=${() => more()} />`}
    <${Table} caption="Access log" rows=${rows} keyOf=${({ requestId, operation, key }) => `${requestId} ${operation} ${key}`} columns=${columns} empty=${state.reading ? 'Reading…' : 'No line has this text in it.'} />
    ${!state.reading && state.read < keys.length && html`<div class="buttons"><button type="button" onClick=${() => more()}>Read older ones</button></div>`}`
}

function searched({ address, requester, requestId, operation, key, status, error }) {
  return [address, requester, requestId, operation, key, status, error].join(' ').toLowerCase()
}

const columns = [
  {
    name: 'Time',
    by: ({ time }) => time,
    cell: ({ time }) => html`<time datetime=${new Date(time).toISOString()}>${formatMoment(time)}</time>`,
  },
  {
    name: 'Status',
    by: ({ status = 0 }) => status,
    cell: ({ status, error }) => status && html`<${Status} of=${{ Status: status, Error: error }} />`,
  },
  {
    name: 'Request',
    rest: true,
    by: ({ operation }) => operation,
    cell: ({ operation, bucket, key }) => html`<${Name} text=${operation} />
      ${key && html` <a href=${linkTo(['buckets', bucket, 'object'], { key })}><${Name} text=${key} /></a>`}`,
  },
  {
    name: 'By',
    by: ({ requester = '' }) => requester,
    cell: ({ requester }) => shortened(requester) ?? 'unsigned',
  },
  { name: 'From', by: ({ address = '' }) => address, cell: ({ address }) => address },
  { name: 'Sent', number: true, by: ({ sent = 0 }) => sent, cell: ({ sent }) => html`<${Bytes} of=${sent} />` },
  { name: 'ms', number: true, by: ({ total = 0 }) => total, cell: ({ total }) => total?.toLocaleString() },
]

/** An account by the begin of its id, a key pair by its name. */
function shortened(requester) {
  if (requester === undefined) return undefined
  const pair = /:user\/(.+)$/.exec(requester)?.[1]
  return pair ?? (/^[0-9a-f]{64}$/.test(requester) ? `${requester.slice(0, 8)}…` : requester)
}

/** @returns { target?, prefix, keys }: the keys of the objects of the log, the newest last */
async function objectsOfLog(client, bucket, signal) {
  const root = await sendXml(client, { bucket, query: { logging: '' }, signal })
  const enabled = root?.child('LoggingEnabled')
  if (!enabled) return {}
  const [target, prefix] = [enabled.get('TargetBucket'), enabled.get('TargetPrefix') ?? '']
  const partitioned = enabled.child('TargetObjectKeyFormat')?.child('PartitionedPrefix') !== undefined
  const keys = partitioned
    ? await keysOfPartitions(client, { target, prefix, bucket }, signal)
    : await keysSince(client, { target, prefix }, signal)
  return { target, prefix, keys }
}

async function keysSince(client, { target, prefix }, signal) {
  for (const days of DAYS) {
    const from = days && new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
    const keys = await keysBelow(client, target, prefix, from && prefix + from, signal)
    if (keys.length > 0) return keys
  }
  return []
}

/** Objects of the log alone: the target may have others with the same prefix. */
async function keysBelow(client, target, prefix, after, signal) {
  const keys = []
  let token
  do {
    const page = await listObjects(client, target, { prefix, token, after, delimiter: '' }, signal)
    keys.push(
      ...page.objects
        .map(({ key }) => key)
        .filter((key) => /^\d{4}(?:-\d\d){5}-[0-9A-F]{16}$/.test(key.slice(prefix.length))),
    )
    token = page.next
  } while (token !== undefined && keys.length < MAX_KEYS)
  return keys
}

/** The newest days: the folders are ACCOUNT/REGION/BUCKET/YEAR/MONTH/DAY. */
async function keysOfPartitions(client, { target, prefix, bucket }, signal) {
  const foldersOf = async (at) => (await listObjects(client, target, { prefix: at, delimiter: '/' }, signal)).folders
  const accounts = await foldersOf(prefix)
  const regions = (await Promise.all(accounts.map(foldersOf))).flat()
  const buckets = (await Promise.all(regions.map(foldersOf))).flat().filter((at) => at.endsWith(`/${bucket}/`))
  let days = buckets
  // The last two of each level: the first days of a month and of a year have few lines.
  for (let level = 0; level < 3; level++) days = (await Promise.all(days.map(foldersOf))).flat().sort().slice(-2)
  return (await Promise.all(days.map((day) => keysBelow(client, target, day, undefined, signal)))).flat()
}
