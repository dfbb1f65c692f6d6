import { formatBytes, formatCount, formatMoment, visibleText } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { goTo, linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { describeVersions, listAt, listVersions, versioningOf } from '../lib/versions.js'
import { Empty } from '../parts/empty.js'
import { Icon } from '../parts/icon.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { VersionState } from '../parts/lock.js'
import { Middle, Name } from '../parts/name.js'
import { Crumbs, Page } from '../parts/page.js'
import { PageLinks } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Bytes, Time } from '../parts/time.js'
import { BucketTabs, pathTo } from './bucket-tabs.js'
import { DeleteVersions } from './object/delete-versions.js'
import { useVersionActions, versionLink } from './object/version-actions.js'
import { headColumns } from './object/versions.js'
import { Past } from './past.js'
import { VersionsSwitch } from './versions-switch.js'

/** Rows of a page: so many are there at once, and can be read. */
const PAGE = 100

/** All versions and delete markers below a prefix, page by page, or what was current there at a time. */
export function Versions({ params: { bucket }, query }) {
  const client = session.value
  const [prefix, token] = [query.get('prefix') ?? '', query.get('token') ?? undefined]
  const at = Date.parse(query.get('at') ?? '')
  const isPast = !Number.isNaN(at)
  const read = (signal) =>
    isPast
      ? listAt(client, bucket, { prefix, token, at, rows: PAGE }, signal)
      : listVersions(client, bucket, { prefix, token, max: PAGE }, signal)
  const page = useLoaded(read, [client, bucket, prefix, token, isPast ? at : undefined])
  const status = useLoaded(async (signal) => ({ of: await versioningOf(client, bucket, signal) }), [client, bucket])
  const [selected, setSelected] = useState(new Set())
  const [dialog, setDialog] = useState()
  useEffect(() => setSelected(new Set()), [page.value])
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  const actions = useVersionActions({ bucket, changed: page.reload })
  const remove = (chosen) => setDialog({ word: bucket, ...chosen })
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    <${Page} title=${`Versions in ${bucket}`} heading=${html`<${Name} text=${folder.split('/').at(-2) || bucket} />`}>
      <${BucketTabs} bucket=${bucket} />
      <${Past} key=${at} bucket=${bucket} prefix=${prefix} at=${isPast ? at : undefined} looked=${page.value?.looked} />
      <${Loaded}
        of=${page}
        show=${({ folders, versions, next }) => {
          const rows = [...folders.map((name) => ({ key: name, folder: true })), ...versions]
          const chosen = rows.filter((row) => selected.has(keyOf(row)))
          const removeChosen = () =>
            remove({
              items: chosen.filter((row) => row.folder).map(({ key }) => ({ name: key, folder: true })),
              versions: chosen.filter((row) => !row.folder),
            })
          return html`<div class="toolbar">
              <${Search} key=${prefix} bucket=${bucket} folder=${folder} start=${prefix.slice(folder.length)} />
              <${VersionsSwitch} bucket=${bucket} prefix=${prefix} on />
              <p class="quiet" role="status">${describe({ folders, versions, isPast, chosen })}${noteOf(status.value)}</p>
              ${
                chosen.length > 0
                  ? html`<div class="buttons" role="group" aria-label="Actions on the selected rows">
                      <button type="button" class="danger" onClick=${removeChosen}>Delete for ever…</button>
                      <button type="button" onClick=${() => setSelected(new Set())}>Clear</button>
                    </div>`
                  : html`<div class="buttons">
                      <button type="button" onClick=${page.reload}>Refresh</button>
                      <button type="button" class="danger" onClick=${() => remove({ items: [{ name: prefix, folder: true }] })}>Delete all versions…</button>
                    </div>`
              }
            </div>
            <${Table}
              caption=${isPast ? 'Objects as they were' : 'Versions and folders'}
              columns=${columnsOf(bucket, folder, rows)}
              rows=${rows}
              keyOf=${keyOf}
              selection=${{ keys: selected, change: setSelected, label: (row) => labelOf(row, folder) }}
              menu=${{ label: (row) => `Actions on ${labelOf(row, folder)}`, items: (row) => (row.folder ? folderItems(bucket, row, remove) : actions.itemsOf(row)) }}
              empty=${html`<${Empty} title=${isPast ? 'Nothing was here then, as far as this page has looked.' : 'There are no versions here.'} />`}
            />
            <${PageLinks} next=${next} />`
        }}
      />
      ${dialog && html`<${DeleteVersions} bucket=${bucket} ...${dialog} done=${page.reload} onClose=${() => setDialog(undefined)} />`} ${actions.dialog}
    <//>`
}

function folderItems(bucket, { key }, remove) {
  return [
    { text: 'Open', href: linkTo(['buckets', bucket, 'versions'], { prefix: key }) },
    { text: 'Delete all versions…', danger: true, action: () => remove({ items: [{ name: key, folder: true }] }) },
  ]
}

function keyOf({ key, folder, versionId }) {
  return folder ? `/${key}` : `=${versionId}/${key}`
}

function labelOf({ key, folder, versionId, modified, deleted }, below) {
  const name = visibleText(key.slice(below.length) || key)
  if (folder) return name
  return `${name}, ${deleted ? 'delete marker' : 'version'} of ${formatMoment(modified)}, ${visibleText(versionId)}`
}

/** What the versioning of the bucket means for the list. @param status { of }, undefined until it is known */
function noteOf(status) {
  if (status === undefined || status.of === 'Enabled') return ''
  if (status.of === 'Suspended') return ' Versioning is suspended.'
  return ' This bucket keeps no versions: its settings turn them on.'
}

function describe({ folders, versions, isPast, chosen }) {
  if (chosen.length > 0) return `${chosen.length} selected.`
  const parts = [
    ...(folders.length > 0 ? [formatCount(folders.length, 'folder')] : []),
    describeVersions(versions, isPast ? 'object' : 'version'),
  ]
  const bytes = versions.reduce((sum, { size = 0 }) => sum + size, 0)
  return `${parts.join(', ')} on this page, ${formatBytes(bytes)}.`
}

function columnsOf(bucket, below, rows) {
  const classes = { name: 'Class', bare: true, cell: ({ storageClass }) => storageClass }
  const hasOther = rows.some(({ storageClass = 'STANDARD' }) => storageClass !== 'STANDARD')
  return [
    { name: 'Name', rest: true, cell: (row) => html`<${Link} bucket=${bucket} below=${below} row=${row} />` },
    { name: 'State', bare: true, cell: (row) => !row.folder && html`<${VersionState} version=${row} />` },
    ...headColumns(bucket).filter(({ name }) => name === 'Lock'),
    { name: 'Size', bare: true, number: true, cell: ({ size }) => html`<${Bytes} of=${size} />` },
    { name: 'Modified', bare: true, cell: ({ modified }) => html`<${Time} of=${modified} />` },
    ...(hasOther ? [classes] : []),
  ]
}

function Link({ bucket, below, row }) {
  const text = row.key.slice(below.length) || row.key
  if (!row.folder && !isReachable(row.key)) return html`<${Middle} text=${text} />`
  const href = row.folder ? linkTo(['buckets', bucket, 'versions'], { prefix: row.key }) : versionLink(bucket, row)
  return html`<a class="entry" href=${href}><${Icon} of=${row.folder ? 'folder' : 'file'} /><${Middle} text=${text} /></a>`
}

/** Goes to the versions of keys that begin with a text. */
function Search({ bucket, folder, start }) {
  const find = (event) => {
    event.preventDefault()
    goTo(['buckets', bucket, 'versions'], { prefix: folder + new FormData(event.target).get('start') })
  }
  return html`<form role="search" onSubmit=${find}>
    <input type="search" name="start" aria-label="Find names that begin with" placeholder="Find by prefix, then Enter" defaultValue=${start} autocomplete="off" spellcheck=${false} />
  </form>`
}
