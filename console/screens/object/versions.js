import { formatMoment, visibleText } from '../../lib/format.js'
import { html, useEffect, useState } from '../../lib/html.js'
import { lockOf } from '../../lib/locks.js'
import { linkTo, route } from '../../lib/router.js'
import { headObject } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { isReachable } from '../../lib/signer.js'
import { describeVersions, versionsOf } from '../../lib/versions.js'
import { Known } from '../../parts/known.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { LockState, VersionState } from '../../parts/lock.js'
import { Name } from '../../parts/name.js'
import { PageLinks } from '../../parts/pages.js'
import { WhenSeen } from '../../parts/seen.js'
import { Table } from '../../parts/table.js'
import { Bytes } from '../../parts/time.js'
import { CompareVersions } from './compare.js'
import { DeleteVersions } from './delete-versions.js'
import { useVersionActions, versionLink } from './version-actions.js'

/** Versions of a page: so many are there at once, and can be read. */
const PAGE = 50

/** The versions of one object, page by page. @param current id of the shown one; @param changed is called after a change */
export function VersionsOf({ bucket, name, shown, changed }) {
  const client = session.value
  const token = route.value.query.get('token') ?? undefined
  const read = (signal) => versionsOf(client, bucket, name, { token, max: PAGE }, signal)
  const page = useLoaded(read, [client, bucket, name, token])
  const [selected, setSelected] = useState(new Set())
  const [dialog, setDialog] = useState()
  useEffect(() => setSelected(new Set()), [page.value])
  const done = () => {
    page.reload()
    changed()
  }
  const actions = useVersionActions({ bucket, changed: done })
  const onClose = () => setDialog(undefined)
  return html`<section>
    <h2>Versions</h2>
    <${Loaded}
      of=${page}
      show=${({ versions, next }) => {
        const chosen = versions.filter(({ versionId }) => selected.has(versionId))
        const canCompare = chosen.length === 2 && chosen.every(({ deleted }) => !deleted)
        return html`<div class="toolbar">
            <p class="quiet" role="status">${describeVersions(versions)}${(next || token) && ' on this page'}${chosen.length > 0 && `; ${chosen.length} selected`}.</p>
            <div class="buttons" role="group" aria-label="Actions on the selected versions">
            <button type="button" disabled=${!canCompare} onClick=${() => setDialog(html`<${CompareVersions} bucket=${bucket} versions=${chosen} onClose=${onClose} />`)}>Compare two</button>
            <button type="button" class="danger" disabled=${chosen.length === 0} onClick=${() => setDialog(html`<${DeleteVersions} bucket=${bucket} versions=${chosen} done=${done} onClose=${onClose} />`)}>Delete selected…</button>
            <button type="button" class="danger" onClick=${() => setDialog(html`<${DeleteVersions} bucket=${bucket} items=${[{ name }]} word=${name} done=${done} onClose=${onClose} />`)}>Delete all versions…</button>
            </div>
          </div>
          <${Table}
            caption="Versions of this object"
            rows=${versions}
            keyOf=${({ versionId }) => versionId}
            columns=${columnsOf(bucket, shown, versions)}
            selection=${{ keys: selected, change: setSelected, label: labelOf }}
            menu=${{ label: (version) => `Actions on ${labelOf(version)}`, items: actions.itemsOf }}
            empty="There is no version on this page."
          />
          <${PageLinks} next=${next} />`
      }}
    />
    ${dialog} ${actions.dialog}
  </section>`
}

function labelOf({ deleted, modified, versionId }) {
  return `the ${deleted ? 'delete marker' : 'version'} of ${formatMoment(modified)}, ${visibleText(versionId)}`
}

function columnsOf(bucket, shown, versions) {
  const hasOther = versions.some(({ storageClass = 'STANDARD' }) => storageClass !== 'STANDARD')
  const classes = { name: 'Class', bare: true, cell: ({ storageClass }) => storageClass }
  return [
    {
      name: 'Version',
      cell: (version) =>
        html`<a href=${versionLink(bucket, version)} aria-current=${version.versionId === shown ? 'true' : undefined}><time>${formatMoment(version.modified)}</time></a>`,
    },
    { name: 'State', bare: true, cell: (version) => html`<${VersionState} version=${version} />` },
    ...headColumns(bucket),
    { name: 'Size', bare: true, number: true, cell: ({ size }) => html`<${Bytes} of=${size} />` },
    ...(hasOther ? [classes] : []),
  ]
}

/** What HEAD alone tells of a version: it is read for the rows that somebody looks at. */
export function headColumns(bucket) {
  const heads = new Map()
  const headOf = ({ key, versionId }) => {
    const id = `${versionId}/${key}`
    if (!heads.has(id)) heads.set(id, headObject(session.peek(), { bucket, key, versionId }))
    return heads.get(id)
  }
  const cell = (show) => (version) =>
    version.size !== undefined &&
    isReachable(version.key) &&
    html`<${WhenSeen}><${Head} of=${version} headOf=${headOf} show=${show} /><//>`
  return [
    { name: 'Lock', cell: cell(({ headers }) => html`<${LockState} short lock=${lockOf(headers)} />`) },
    { name: 'Deal', cell: cell(({ headers }) => html`<${Deal} headers=${headers} />`) },
  ]
}

function Head({ of: version, headOf, show }) {
  const facts = useLoaded(() => headOf(version), [version])
  if (facts.error)
    return html`<span class="quiet">not known: <${Name} text=${facts.error.code ?? facts.error.name} /></span>`
  return facts.value === undefined ? html`<span class="quiet">…</span>` : show(facts.value)
}

function Deal({ headers }) {
  const [state, cid] = [headers.get('x-amz-meta-deal-status'), headers.get('x-amz-meta-deal-cid')]
  if (state === undefined) return html`<span class="quiet">none</span>`
  return cid
    ? html`<a href=${linkTo(['deals', cid])}><${Known} kind="deal" of=${state} /></a>`
    : html`<${Known} kind="deal" of=${state} />`
}
