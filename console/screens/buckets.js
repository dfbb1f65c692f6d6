import { send, sendJson } from '../lib/api.js'
import { formatCount, formatTime, visibleText } from '../lib/format.js'
import { html, useMemo, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { listBuckets, without } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { Confirm } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, Problem, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify, notifyError } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { PageLinks } from '../parts/pages.js'
import { State } from '../parts/state.js'
import { Table } from '../parts/table.js'

/** Buckets on a page: the server looks at each of them. */
const PAGE = 100

/** All buckets, with what makes and removes them. */
export function Buckets({ query }) {
  const client = session.value
  const buckets = useLoaded((signal) => listBuckets(client, signal), [client])
  const [dialog, setDialog] = useState()
  const close = () => setDialog(undefined)
  const done = (text) => {
    notify(text)
    buckets.reload()
  }
  // Its file is loaded when it is wanted: the list is the first screen.
  const create = () =>
    import('./settings/create-bucket.js').then(
      ({ CreateBucket: Create }) => setDialog({ kind: 'create', Create }),
      notifyError,
    )
  return html`<${Page} title="Buckets">
    <div class="buttons">
      <button type="button" class="main" onClick=${create}>Create bucket</button>
      <button type="button" onClick=${buckets.reload}>Refresh</button>
    </div>
    <${Loaded}
      of=${buckets}
      show=${(all) => html`<${List} all=${all} query=${query} remove=${(name) => setDialog({ kind: 'delete', name })} />`}
    />
    <${OpenByName} />
    ${dialog?.kind === 'create' && html`<${dialog.Create} onClose=${close} done=${done} />`}
    ${dialog?.kind === 'delete' && html`<${Delete} name=${dialog.name} onClose=${close} done=${done} />`}
  <//>`
}

/** A page of the buckets whose names begin as `query` asks. */
function List({ all, query, remove }) {
  const client = session.value
  const [prefix, at] = [query.get('prefix') ?? '', Number(query.get('token') ?? 0)]
  const found = useMemo(() => all.filter(({ name }) => name.startsWith(prefix)), [all, prefix])
  const rows = useMemo(() => found.slice(at, at + PAGE), [found, at])
  const access = useLoaded((signal) => accessTo(client, rows, signal), [client, rows])
  return html`${
    all.length > PAGE &&
    html`<${Form} action=${(values) => goTo(['buckets'], { prefix: values.get('begins').trim() })} submit="Filter">
      <${Field} label="Names that begin with" input=${{ name: 'begins', defaultValue: prefix, autocomplete: 'off', spellcheck: false }} />
    <//>`
  }
    <p class="quiet">${formatCount(found.length, 'bucket')}</p>
    ${access.error && html`<${Problem} error=${access.error} />`}
    <${Table} caption="Buckets" rows=${rows} keyOf=${({ name }) => name} columns=${columns(remove, access)} empty="There is no bucket yet, or none that you may see." />
    <${PageLinks} next=${at + PAGE < found.length ? String(at + PAGE) : undefined} />`
}

/** Whether each is public, by its name; undefined for a key pair that may not know. */
async function accessTo(client, rows, signal) {
  const query = { from: rows[0]?.name, 'max-items': rows.length }
  const asked = { path: '/-/access/v1/buckets', query, signal }
  const answer = rows.length > 0 && (await sendJson(client, asked).catch(without('AccessDenied')))
  return new Map((answer?.Buckets ?? []).map(({ Bucket, Public }) => [Bucket, Public]))
}

function publicWord(isPublic, loading) {
  if (isPublic === undefined) return loading ? 'Loading…' : 'Not known'
  return html`<${State} of=${isPublic ? 'Public' : 'Not public'} />`
}

function columns(onDelete, access) {
  return [
    {
      name: 'Name',
      by: ({ name }) => name,
      cell: ({ name }) => html`<a href=${linkTo(['buckets', name, 'objects'])}><${Name} text=${name} /></a>`,
    },
    { name: 'Created', by: ({ created }) => created, cell: ({ created }) => formatTime(created) },
    { name: 'Public', cell: ({ name }) => publicWord(access.value?.get(name), access.loading) },
    {
      name: 'Actions',
      cell: ({ name }) =>
        html`<button type="button" class="danger" aria-label=${`Delete bucket ${visibleText(name)}`} onClick=${() => onDelete(name)}>Delete</button>`,
    },
  ]
}

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

function Delete({ name, onClose, done }) {
  const action = async (signal) => {
    await send(session.value, { method: 'DELETE', bucket: name, signal })
    done(`The bucket ${name} was deleted.`)
  }
  return html`<${Confirm} title="Delete bucket" word=${name} submit="Delete bucket" action=${action} onClose=${onClose}>
    <p>The bucket <strong><${Name} text=${name} /></strong> is deleted with its settings. Only an empty bucket can be deleted: its objects stay until you delete them. This cannot be undone.</p>
  <//>`
}
