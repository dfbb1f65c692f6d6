import { ApiError, send, sendJson } from '../lib/api.js'
import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, useEffect, useMemo, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { listBuckets, without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, Problem, useLoaded, usePolling } from '../parts/load.js'
import { Progress } from '../parts/measure.js'
import { Name } from '../parts/name.js'
import { notify, notifyError } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { Filters, PageLinks, Words } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { amountOf, columnsOf } from './bucket-columns.js'

/** Buckets on a page, which one call describes: they can be sorted by everything that is shown of them. */
const PAGE = 1000
/** So many are found by eye. */
const FEW = 10

/** All buckets, with what makes and removes them. */
export function Buckets({ query }) {
  const client = session.value
  const [prefix, token] = [query.get('prefix') || undefined, query.get('token') ?? undefined]
  const page = useLoaded((signal) => describe(client, { prefix, token }, signal), [client, prefix, token])
  const [dialog, setDialog] = useState()
  const close = () => setDialog(undefined)
  const done = (text) => {
    notify(text)
    page.reload()
  }
  // Its file is loaded when it is wanted: the list is the first screen.
  const create = () =>
    import('./settings/create-bucket.js').then(
      ({ CreateBucket: Create }) => setDialog({ kind: 'create', Create }),
      notifyError,
    )
  const actions = html`<button type="button" onClick=${page.reload}>Refresh</button>
    <button type="button" class="main" onClick=${create}>Create bucket</button>`
  const remove = (name) => setDialog({ kind: 'delete', name })
  return html`<${Page} title="Buckets" actions=${actions}>
    <${Loaded} of=${page} show=${(value) => html`<${List} page=${value} prefix=${prefix} reload=${page.reload} remove=${remove} create=${create} />`} />
    <${OpenByName} />
    ${dialog?.kind === 'create' && html`<${dialog.Create} onClose=${close} done=${done} />`}
    ${dialog?.kind === 'delete' && html`<${Delete} name=${dialog.name} onClose=${close} done=${done} />`}
  <//>`
}

/** A page of buckets: by their names alone where the server or the rights of the key pair do not allow more. */
async function describe(client, { prefix, token }, signal) {
  const query = { 'max-items': PAGE, public: false, prefix, 'continuation-token': token }
  const asked = sendJson(client, { path: '/-/usage/v1/buckets', query, signal })
  const answer = await asked.catch(without('AccessDenied', 'NotImplemented', 'NoSuchKey'))
  if (answer) {
    const rows = answer.Buckets.map((one) => ({ ...one, name: one.Bucket, created: Date.parse(one.Created) }))
    return { rows, next: answer.NextContinuationToken }
  }
  const all = (await listBuckets(client, signal)).filter(({ name }) => name.startsWith(prefix ?? ''))
  const at = Number(token ?? 0)
  return { rows: all.slice(at, at + PAGE), next: at + PAGE < all.length ? String(at + PAGE) : undefined }
}

function List({ page: { rows: found, next }, prefix, reload, remove, create }) {
  const client = session.value
  const access = useLoaded((signal) => accessTo(client, found, signal), [client, found])
  const rows = useMemo(
    () => found.map((one) => ({ ...one, Public: access.value?.get(one.name) })),
    [found, access.value],
  )
  const counting = useCounting(reload)
  const menu = {
    label: ({ name }) => `Actions on ${visibleText(name)}`,
    items: ({ name, Numbers }) => [
      { text: 'Open', href: linkTo(['buckets', name, 'objects']) },
      { text: 'Settings', href: linkTo(['buckets', name, 'settings']) },
      !Numbers && { text: 'Count objects', action: () => counting.start(name) },
      { text: 'Delete', danger: true, action: () => remove(name) },
    ],
  }
  if (rows.length === 0 && !prefix)
    return html`<${Empty} title="There is no bucket yet, or none that you may see." actions=${html`<button type="button" class="main" onClick=${create}>Create bucket</button>`}>Objects are kept in buckets. Make the first one, or open one by its name.<//>`
  return html`<div class="toolbar">
      <p class="quiet">${summary(rows, next)}</p>
      ${
        (rows.length > FEW || prefix) &&
        html`<${Filters} query=${new URLSearchParams({ prefix: prefix ?? '' })} to=${['buckets']}><${Words} label="Names that begin with" name="prefix" value=${prefix} /><//>`
      }
    </div>
    ${counting.shown} ${access.error && html`<${Problem} error=${access.error} retry=${access.reload} />`}
    <${Table} caption="Buckets" rows=${rows} keyOf=${({ name }) => name} columns=${columnsOf(rows, access.loading)} menu=${menu} empty="No bucket has such a name." />
    <${PageLinks} next=${next} />`
}

/** Whether each is public, by its name: asked for by itself, since the server looks at each policy. */
async function accessTo(client, rows, signal) {
  if (rows.length === 0) return new Map()
  const query = { from: rows[0].name, 'max-items': rows.length }
  const asked = sendJson(client, { path: '/-/access/v1/buckets', query, signal })
  const answer = await asked.catch(without('AccessDenied'))
  return new Map((answer?.Buckets ?? []).map(({ Bucket, Public }) => [Bucket, Public]))
}

function summary(rows, next) {
  const known = rows.map(amountOf).filter(Boolean)
  const sum = (member) => known.reduce((total, one) => total + one[member], 0)
  const words = `${formatCount(rows.length, 'bucket')}${next ? ' on this page' : ''}`
  if (known.length < rows.length || rows.length === 0) return words
  return `${words} with ${formatCount(sum('Objects'), 'object')}, ${formatBytes(sum('Bytes'))}`
}

/** Runs one count at a time, as a job that goes on when the screen is left. */
function useCounting(ended) {
  const client = session.value
  const [started, setStarted] = useState()
  const path = started && `/-/jobs/v1/${uriEncode(started.job)}`
  const job = useLoaded(async (signal) => path && sendJson(client, { path, signal }), [client, path])
  const running = job.value && !HAS_ENDED.has(job.value.Status)
  usePolling(Boolean(running), [job])
  const status = job.value?.Status
  useEffect(() => {
    if (!started || !HAS_ENDED.has(status)) return
    notify(`The count of ${visibleText(started.name)} has ended: ${status}.`)
    setStarted(undefined)
    ended()
  }, [status])
  const start = async (name) => {
    try {
      const request = {
        method: 'POST',
        bucket: name,
        query: { 'x-usage': '' },
        headers: { prefer: 'wait=0' },
        json: {},
      }
      setStarted({ name, job: (await sendJson(client, request)).JobId })
    } catch (error) {
      notifyError(error)
    }
  }
  const done = job.value?.ProgressSummary?.NumberOfTasksSucceeded ?? 0
  const shown =
    started &&
    html`<p role="status"><${Progress} label=${`Count of ${visibleText(started.name)}`} text=${html`<${Name} text=${started.name} />: ${formatCount(done, 'object')} counted so far. <a href=${linkTo(['jobs', started.job])}>The job</a>`} /></p>`
  return { start, shown }
}

const HAS_ENDED = new Set(['Complete', 'Failed', 'Cancelled'])

/** For key pairs that may use a bucket but not list all of them. */
function OpenByName() {
  const action = async (values) =>
    goTo(['buckets', values.get('bucket').trim(), 'objects'], { prefix: values.get('prefix').trim() })
  return html`<details>
    <summary>Open a bucket that is not listed</summary>
    <${Form} action=${action} submit="Open">
      <${Field} label="Name of the bucket" input=${{ name: 'bucket', required: true, autocomplete: 'off', spellcheck: false }} />
      <${Field} label="Prefix" hint="If you may see only a part of it, such as reports/2026/." input=${{ name: 'prefix', autocomplete: 'off', spellcheck: false }} />
    <//>
  </details>`
}

/** A list of objects may be empty where versions are left. */
function sayWhatStays(error) {
  if (error.code !== 'BucketNotEmpty') throw error
  throw new ApiError(
    error.code,
    `${error.message.replace(/\.$/, '')}. “Show versions and deleted” on its list shows all that is in it.`,
    error,
  )
}

function Delete({ name, onClose, done }) {
  const action = async (signal) => {
    await send(session.value, { method: 'DELETE', bucket: name, signal }).catch(sayWhatStays)
    done(`The bucket ${name} was deleted.`)
  }
  return html`<${Confirm} title="Delete bucket" word=${name} submit="Delete bucket" action=${action} onClose=${onClose}>
    <p>The bucket <strong><${Name} text=${name} /></strong> is deleted with its settings. Only an empty bucket can be deleted: its objects stay until you delete them. This cannot be undone.</p>
  <//>`
}
