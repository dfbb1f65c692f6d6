import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, signal, useEffect, useMemo, useState } from '../lib/html.js'
import { lockRuleOf } from '../lib/locks.js'
import { goTo, linkTo } from '../lib/router.js'
import { listObjects } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { Empty } from '../parts/empty.js'
import { Icon } from '../parts/icon.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Bytes, Time } from '../parts/time.js'
import { ArchiveObjects } from './archive-objects.js'
import { BatchObjects } from './batch-objects.js'
import { BucketTabs, pathTo } from './bucket-tabs.js'
import { NewFolder, RenameObjects } from './folders.js'
import { DeleteObjects } from './object/delete.js'
import { headColumns } from './object/versions.js'
import { CopyObjects, downloadObject, TagObjects } from './object-actions.js'
import { ObjectsGrid } from './objects-grid.js'
import { RestoreObjects } from './restore-objects.js'
import { ShareDialog } from './share.js'
import { UploadButtons } from './upload-buttons.js'
import { VersionsSwitch } from './versions-switch.js'
import { ZipObjects } from './zip.js'

/** Rows of a page: so many are there at once, and can be read. */
const PAGE = 100

/** Whether the rows are shown as tiles, as long as the tab is open. */
const tiles = signal(false)

/**
 * What can be done with one row or several: { text, View } of a dialog, with `one` for what is done with a single row, and
 * `many` for what makes no sense with one object.
 */
const ACTIONS = [
  { text: 'Download as ZIP…', View: ZipObjects, many: true },
  { text: 'Copy or move…', View: CopyObjects },
  { text: 'Rename…', View: RenameObjects, one: true },
  { text: 'Tag…', View: TagObjects },
  { text: 'Archive…', View: ArchiveObjects },
  { text: 'Restore…', View: RestoreObjects },
  { text: 'Batch job…', View: BatchObjects },
  { text: 'Delete…', View: DeleteObjects, danger: true },
]

/** The objects and folders of a bucket below a prefix, page by page. */
export function Objects({ params: { bucket }, query }) {
  const client = session.value
  const prefix = query.get('prefix') ?? ''
  const token = query.get('token') ?? undefined
  const page = useLoaded(
    (signal) => listObjects(client, bucket, { prefix, token, max: PAGE }, signal),
    [client, bucket, prefix, token],
  )
  const rule = useLoaded(async (signal) => ({ of: await lockRuleOf(client, bucket, signal) }), [client, bucket])
  const hasLocks = rule.value?.of !== undefined
  // What HEAD tells is read once for the rows of a page.
  const columns = useMemo(() => columnsOf(bucket, hasLocks), [bucket, hasLocks, page.value])
  const [selected, setSelected] = useState(new Set())
  const [filter, setFilter] = useState('')
  const [dialog, setDialog] = useState()
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  const start = prefix.slice(folder.length)
  useEffect(() => {
    setSelected(new Set())
    setFilter('')
  }, [bucket, prefix, token])
  const done = () => {
    setSelected(new Set())
    page.reload()
  }
  // What was deleted or moved is selected no longer.
  useEffect(() => {
    if (page.value === undefined) return
    const there = new Set(rowsOf(page.value, folder).map(keyOf))
    setSelected((keys) => new Set([...keys].filter((key) => there.has(key))))
  }, [page.value])
  const items = [...selected].map((key) => ({ name: key.slice(1), folder: key.startsWith('/') }))
  const chosen = { bucket, folder, done, refresh: page.reload, onClose: () => setDialog(undefined) }
  const newFolder = () => setDialog({ View: NewFolder })
  const buttons = html`<${UploadButtons} bucket=${bucket} folder=${folder} onDone=${page.reload} onNewFolder=${newFolder} />`
  const menu = {
    label: ({ label }) => `Actions on ${visibleText(label)}`,
    items: (row) => [
      !row.folder && isReachable(row.name) && { text: 'Download', action: () => downloadObject(bucket, row.name) },
      !row.folder &&
        isReachable(row.name) && { text: 'Share…', action: () => setDialog({ View: ShareDialog, name: row.name }) },
      ...ACTIONS.filter(({ many }) => !many || row.folder).map((action) => ({
        ...action,
        action: () => setDialog({ ...action, items: [row] }),
      })),
    ],
  }
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    <${Page} title=${`Objects in ${bucket}`} heading=${html`<${Name} text=${folder.split('/').at(-2) || bucket} />`} actions=${buttons}>
      <${BucketTabs} bucket=${bucket} />
      <${Loaded}
        of=${page}
        show=${(value) => {
          const rows = rowsOf(value, folder)
          const shown = rows.filter(({ label }) => label.toLowerCase().includes(filter.toLowerCase()))
          return html`<div class="toolbar">
              <${Search} key=${prefix} bucket=${bucket} folder=${folder} start=${start} onFilter=${setFilter} />
              <${VersionsSwitch} bucket=${bucket} prefix=${prefix} />
              <p class="quiet" role="status">${describe(value, shown, selected)}</p>
              <${Selection} items=${items} open=${setDialog} onClear=${() => setSelected(new Set())} onRefresh=${page.reload} />
            </div>
            <${tiles.value ? ObjectsGrid : Table}
              bucket=${bucket}
              linkOf=${linkOf}
              caption="Objects and folders"
              columns=${columns}
              rows=${shown}
              keyOf=${keyOf}
              selection=${{ keys: selected, change: setSelected, label: ({ label }) => visibleText(label) }}
              menu=${menu}
              empty=${html`<${Nothing} filtered=${rows.length > 0} start=${start} token=${token} onNewFolder=${newFolder} />`}
            />
            <${PageLinks} next=${value.next} />`
        }}
      />
      ${dialog && html`<${dialog.View} items=${dialog.items ?? items} name=${dialog.name} ...${chosen} />`}
    <//>`
}

/** Filters the rows of the page while one types; Enter asks the server for all names that begin so. */
function Search({ bucket, folder, start, onFilter }) {
  const find = (event) => {
    event.preventDefault()
    goTo(['buckets', bucket, 'objects'], { prefix: folder + new FormData(event.target).get('start') })
  }
  return html`<form role="search" onSubmit=${find}>
    <input
      type="search"
      name="start"
      aria-label="Filter this page, or find names that begin with"
      placeholder="Filter, or press Enter to find by prefix"
      defaultValue=${start}
      autocomplete="off"
      spellcheck=${false}
      onInput=${({ target }) => onFilter(target.value === start ? '' : target.value)}
    />
  </form>`
}

function Selection({ items, open, onClear, onRefresh }) {
  if (items.length === 0)
    return html`<div class="buttons">
      <button type="button" onClick=${() => (tiles.value = !tiles.value)}>${tiles.value ? 'List' : 'Tiles'}</button>
      <button type="button" onClick=${onRefresh}>Refresh</button>
    </div>`
  return html`<div class="buttons" role="group" aria-label="Actions on the selected rows">
    ${ACTIONS.filter(({ one }) => !one).map(
      (action) =>
        html`<button type="button" class=${action.danger ? 'danger' : undefined} onClick=${() => open(action)}>${action.text}</button>`,
    )}
    <button type="button" onClick=${onClear}>Clear</button>
  </div>`
}

function Nothing({ filtered, start, token, onNewFolder }) {
  if (filtered)
    return html`<${Empty} title="No name on this page has this text in it.">Press Enter to find names of all pages that begin with it.<//>`
  if (token !== undefined) return html`<${Empty} title="There is nothing on this page." />`
  if (start !== '') return html`<${Empty} title="No name here begins so." />`
  const actions = html`<button type="button" onClick=${onNewFolder}>New folder</button>`
  return html`<${Empty} title="There is nothing here yet." actions=${actions}>Drop files and folders on this page, or choose Upload files.<//>`
}

function keyOf({ name, folder }) {
  return `${folder ? '/' : '='}${name}`
}

function describe({ folders, objects }, shown, selected) {
  if (selected.size > 0) return `${selected.size} selected`
  const parts = [formatCount(folders.length, 'folder'), formatCount(objects.length, 'object')]
  const bytes = objects.reduce((sum, { size }) => sum + size, 0)
  const some = shown.length < folders.length + objects.length ? `; ${shown.length} match the filter` : ''
  return `${parts.join(' and ')} on this page, ${formatBytes(bytes)}${some}`
}

/** @returns [{ name, label, folder }] or [{ name, label, size, modified, storageClass }] */
function rowsOf({ folders, objects }, folder) {
  return [
    ...folders.map((name) => ({ name, label: name.slice(folder.length), folder: true })),
    ...objects.map((object) => ({ name: object.key, label: object.key.slice(folder.length) || object.key, ...object })),
  ]
}

/** @param hasLocks whether objects of the bucket can be locked */
function columnsOf(bucket, hasLocks) {
  return [
    {
      name: 'Name',
      rest: true,
      by: ({ label }) => label,
      cell: (row) => html`<${Link} bucket=${bucket} row=${row} />`,
    },
    ...(hasLocks ? headColumns(bucket).filter(({ name }) => name === 'Lock') : []),
    {
      name: 'Size',
      bare: true,
      number: true,
      by: ({ size = -1 }) => size,
      cell: ({ size }) => html`<${Bytes} of=${size} />`,
    },
    {
      name: 'Modified',
      bare: true,
      by: ({ modified = 0 }) => modified,
      cell: ({ modified }) => html`<${Time} of=${modified} />`,
    },
    {
      name: 'Class',
      bare: true,
      by: ({ storageClass = '' }) => storageClass,
      cell: ({ storageClass }) => storageClass,
    },
  ]
}

function linkOf(bucket, { name, folder }) {
  return folder
    ? linkTo(['buckets', bucket, 'objects'], { prefix: name })
    : linkTo(['buckets', bucket, 'object'], { key: name })
}

function Link({ bucket, row }) {
  return html`<a class="entry" href=${linkOf(bucket, row)}><${Icon} of=${row.folder ? 'folder' : 'file'} /><${Middle} text=${row.label} /></a>`
}
