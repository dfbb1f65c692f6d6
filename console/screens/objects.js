import { formatBytes, formatCount, formatTime, visibleText } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { listObjects } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { Field, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { ArchiveObjects } from './archive-objects.js'
import { BucketTabs } from './bucket-tabs.js'
import { CopyObjects, DeleteObjects, downloadObject, TagObjects } from './object-actions.js'
import { RestoreObjects } from './restore-objects.js'
import { UploadButtons } from './upload-buttons.js'

/** Rows of a page: so many are there at once, and can be read. */
const PAGE = 200

/** The objects and folders of a bucket below a prefix, page by page. */
export function Objects({ params: { bucket }, query }) {
  const client = session.value
  const prefix = query.get('prefix') ?? ''
  const token = query.get('token') ?? undefined
  const page = useLoaded(
    (signal) => listObjects(client, bucket, { prefix, token, max: PAGE }, signal),
    [client, bucket, prefix, token],
  )
  const [selected, setSelected] = useState(new Set())
  const [filter, setFilter] = useState('')
  const [dialog, setDialog] = useState()
  useEffect(() => {
    setSelected(new Set())
    setFilter('')
  }, [bucket, prefix, token])
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  const close = () => setDialog(undefined)
  const done = () => {
    setSelected(new Set())
    page.reload()
  }
  // What was deleted or moved is selected no longer.
  useEffect(() => {
    if (page.value === undefined) return
    const { folders, objects } = page.value
    const there = new Set(rowsOf(folders, objects, folder).map(keyOf))
    setSelected((keys) => new Set([...keys].filter((key) => there.has(key))))
  }, [page.value])
  const items = [...selected].map((key) => ({ name: key.slice(1), folder: key.startsWith('/') }))
  const chosen = { bucket, folder, items, done, refresh: page.reload, onClose: close }
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    <${Page} title=${`Objects in ${bucket}`} heading=${html`Objects in <${Name} text=${`${bucket}/${prefix}`} />`}>
      <${BucketTabs} bucket=${bucket} />
      <${UploadButtons} bucket=${bucket} folder=${folder} onDone=${page.reload} />
      <${Find} bucket=${bucket} folder=${folder} key=${prefix} start=${prefix.slice(folder.length)} />
      <${Loaded}
        of=${page}
        show=${({ folders, objects, next }) => {
          const rows = rowsOf(folders, objects, folder)
          const shown = rows.filter(({ label }) => label.toLowerCase().includes(filter.toLowerCase()))
          return html`<${Field} label="Filter this page" input=${{ value: filter, autocomplete: 'off', spellcheck: false, onInput: (event) => setFilter(event.target.value) }} />
            <div class="buttons" role="group" aria-label="Actions on the selected rows">
              <button type="button" disabled=${selected.size === 0} onClick=${() => setDialog({ View: DeleteObjects })}>Delete…</button>
              <button type="button" disabled=${selected.size === 0} onClick=${() => setDialog({ View: CopyObjects })}>Copy or move…</button>
              <button type="button" disabled=${selected.size === 0} onClick=${() => setDialog({ View: TagObjects })}>Tag…</button>
              <button type="button" disabled=${selected.size === 0} onClick=${() => setDialog({ View: ArchiveObjects })}>Archive…</button>
              <button type="button" disabled=${selected.size === 0} onClick=${() => setDialog({ View: RestoreObjects })}>Restore…</button>
              <button type="button" onClick=${page.reload}>Refresh</button>
            </div>
            <p class="quiet" role="status">${describe(folders, objects, shown, selected)}</p>
            <${Table}
              caption="Objects and folders"
              columns=${columns(bucket)}
              rows=${shown}
              keyOf=${keyOf}
              selection=${{ keys: selected, change: setSelected, label: ({ label }) => visibleText(label) }}
              empty=${token === undefined ? 'There is nothing below this prefix.' : 'There is nothing on this page.'}
            />
            <${PageLinks} next=${next} />`
        }}
      />
      ${dialog && html`<${dialog.View} ...${chosen} />`}
    <//>`
}

function keyOf({ name, folder }) {
  return `${folder ? '/' : '='}${name}`
}

function describe(folders, objects, shown, selected) {
  const parts = [formatCount(folders.length, 'folder'), formatCount(objects.length, 'object')]
  const bytes = objects.reduce((sum, { size }) => sum + size, 0)
  const text = `${parts.join(' and ')} on this page, ${formatBytes(bytes)}`
  const some = shown.length < folders.length + objects.length ? `; ${shown.length} match the filter` : ''
  return `${text}${some}${selected.size > 0 ? `; ${selected.size} selected` : ''}.`
}

/** @returns [{ name, label, folder }] or [{ name, label, size, modified, storageClass }] */
function rowsOf(folders, objects, folder) {
  return [
    ...folders.map((name) => ({ name, label: name.slice(folder.length), folder: true })),
    ...objects.map((object) => ({ name: object.key, label: object.key.slice(folder.length) || object.key, ...object })),
  ]
}

function columns(bucket) {
  return [
    { name: 'Name', by: ({ label }) => label, cell: (row) => html`<${Link} bucket=${bucket} row=${row} />` },
    { name: 'Size', number: true, by: ({ size = -1 }) => size, cell: ({ size }) => formatBytes(size) },
    {
      name: 'Modified',
      by: ({ modified = 0 }) => modified,
      cell: ({ modified }) => (modified ? formatTime(modified) : ''),
    },
    { name: 'Class', by: ({ storageClass = '' }) => storageClass, cell: ({ storageClass }) => storageClass },
    {
      name: 'Actions',
      cell: ({ name, label, folder }) =>
        !folder &&
        isReachable(name) &&
        html`<button type="button" aria-label=${`Download ${visibleText(label)}`} onClick=${() => downloadObject(bucket, name)}>Download</button>`,
    },
  ]
}

function Link({ bucket, row: { name, label, folder } }) {
  if (folder)
    return html`<a href=${linkTo(['buckets', bucket, 'objects'], { prefix: name })}><${Name} text=${label} /></a>`
  return html`<a href=${linkTo(['buckets', bucket, 'object'], { key: name })}><${Name} text=${label} /></a>`
}

/** Goes to the keys that begin with a text: the server searches all of them, not this page alone. */
function Find({ bucket, folder, start }) {
  const action = async (values) => goTo(['buckets', bucket, 'objects'], { prefix: folder + values.get('start') })
  return html`<${Form} action=${action} submit="Find">
    <${Field}
      label="Find names that begin with"
      input=${{ name: 'start', defaultValue: start, type: 'search', autocomplete: 'off', spellcheck: false }}
    />
  <//>`
}

/** Links to the folders that lead to this one. */
export function pathTo(bucket, folder) {
  const link = (text, prefix) => ({
    text: html`<${Name} text=${text} />`,
    href: linkTo(['buckets', bucket, 'objects'], { prefix }),
  })
  const parts = folder.split('/').slice(0, -1)
  return [
    { text: 'Buckets', href: linkTo(['buckets']) },
    link(bucket),
    ...parts.map((part, i) => link(part || '/', `${parts.slice(0, i + 1).join('/')}/`)),
  ]
}
