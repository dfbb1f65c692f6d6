import { html, useState } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { VersionState } from '../../parts/lock.js'
import { Menu } from '../../parts/menu.js'
import { notifyError } from '../../parts/notices.js'
import { CopyObjects, downloadObject } from '../object-actions.js'
import { ShareDialog } from '../share.js'
import { DeleteObjects } from './delete.js'
import { DeleteVersion } from './delete-version.js'
import { ChangeClass, EditMetadata } from './edit.js'
import { useLockItems } from './locks.js'
import { RestoreVersion, undelete } from './version-actions.js'

/**
 * The actions on an object or a version, beside its title, and which version it is.
 * @param place { bucket, key, versionId }, `versionId` undefined where the address names none
 * @param current id of the current version; @param changed, @param left are called after a change, and after a removal
 */
export function Actions({ place, facts, current, folder, changed, left }) {
  const { bucket, key } = place
  const [dialog, setDialog] = useState()
  const ask = (View, more) => setDialog({ View, more })
  const isCurrent = facts.versionId === current
  const version = { key, versionId: facts.versionId, size: facts.size, modified: facts.modified, latest: isCurrent }
  const locks = useLockItems(bucket, facts.versionId !== undefined, (View, more) =>
    ask(View, { ...more, place: { ...place, versionId: facts.versionId }, done: changed }),
  )
  const edited = { place, facts, done: changed }
  const selection = { bucket, folder, items: [{ name: key }], done: left, refresh: changed }
  const items = [
    isCurrent && { text: 'Copy or move…', action: () => ask(CopyObjects, selection) },
    isCurrent && { text: 'Edit metadata…', action: () => ask(EditMetadata, edited) },
    isCurrent && { text: 'Storage class…', action: () => ask(ChangeClass, edited) },
    ...locks,
    facts.versionId !== undefined && {
      text: 'Delete this version for ever…',
      danger: true,
      action: () => ask(DeleteVersion, { bucket, version, done: left }),
    },
  ].filter(Boolean)
  return html`${facts.versionId !== undefined && html`<${VersionState} version=${version} />`}
    <button type="button" onClick=${changed}>Refresh</button>
    <button type="button" onClick=${() => ask(ShareDialog, { bucket, name: key, versionId: place.versionId })}>Share…</button>
    ${!isCurrent && html`<button type="button" onClick=${() => ask(RestoreVersion, { bucket, version, done: changed })}>Restore…</button>`}
    ${isCurrent && html`<button type="button" class="danger" onClick=${() => ask(DeleteObjects, selection)}>Delete…</button>`}
    <button type="button" class="main" onClick=${() => downloadObject(bucket, key, place.versionId)}>Download</button>
    ${items.length > 0 && html`<${Menu} label="More actions" items=${items} />`}
    ${dialog && html`<${dialog.View} ...${dialog.more} onClose=${() => setDialog(undefined)} />`}`
}

/** Says that a version is not the current one, and leads there. */
export function EarlierNote({ place: { bucket, key }, facts, current }) {
  if (facts.versionId === current) return undefined
  return html`<p class="note">This is not the current version${current === undefined ? ': the object is deleted' : ''}. <a href=${linkTo(['buckets', bucket, 'object'], { key })}>${current === undefined ? 'Show the object' : 'Show the current version'}</a></p>`
}

/** Instead of them, for an object whose newest version, or the version that the address names, is a delete marker. */
export function DeletedActions({ bucket, name, version, marker, changed }) {
  const [asked, setAsked] = useState(false)
  const own = { key: name, versionId: marker, deleted: true, latest: version === undefined }
  return html`<${VersionState} version=${own} />
    <button type="button" class="danger" onClick=${() => setAsked(true)}>Delete the marker…</button>
    ${version === undefined && html`<button type="button" class="main" onClick=${() => undelete(bucket, own).then(changed, notifyError)}>Undelete</button>`}
    ${asked && html`<${DeleteVersion} bucket=${bucket} version=${own} done=${changed} onClose=${() => setAsked(false)} />`}`
}

export function DeletedNote({ version }) {
  return html`<p class="note">${version === undefined ? 'The newest version of this object is a delete marker: requests that name no version get 404 (NoSuchKey).' : 'This version is a delete marker: it has no bytes.'}</p>`
}
