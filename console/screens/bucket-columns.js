import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Bar } from '../parts/measure.js'
import { Name } from '../parts/name.js'
import { Badge, State } from '../parts/state.js'
import { Bytes, Time } from '../parts/time.js'

/** Objects and bytes, as the gateway keeps them or the last count has found them. */
export const amountOf = ({ Numbers, Counted }) => Numbers ?? Counted

/** A column that sorts by a text or number, with what is not known first. */
const column = (name, by, cell, more) => ({ name, by: (row) => by(row) ?? (more?.number ? -1 : ''), cell, ...more })

/**
 * The columns of a table of buckets, each as `/-/usage/v1/buckets` describes it; none without any value, and a quota only where a bucket has one.
 * @param loading whether a bucket is public is still asked for
 */
export function columnsOf(rows, loading) {
  const any = (member) => rows.some((row) => row[member] !== undefined)
  const quiet = (text) => html`<span class="quiet">${text}</span>`
  const number = { number: true }
  return [
    column(
      'Name',
      ({ name }) => name,
      ({ name }) => html`<a href=${linkTo(['buckets', name, 'objects'])}><${Name} text=${name} /></a>`,
    ),
    column(
      'Objects',
      (row) => amountOf(row)?.Objects,
      (row) => objectsCell(row),
      number,
    ),
    column(
      'Size',
      (row) => amountOf(row)?.Bytes,
      (row) => (amountOf(row) ? html`<${Bytes} of=${amountOf(row).Bytes} />` : undefined),
      number,
    ),
    any('Versioning') &&
      column(
        'Versions',
        ({ Versioning, ObjectLock }) => (ObjectLock ? 3 : ['Disabled', 'Suspended', 'Enabled'].indexOf(Versioning)),
        (row) => versionsCell(row),
      ),
    any('Encryption') &&
      column(
        'Encryption',
        ({ Encryption }) => Encryption,
        ({ Encryption }) => (Encryption === 'None' ? quiet('Off') : Encryption),
      ),
    rows.some(({ Quota = {} }) => Object.keys(Quota).length > 0) &&
      column(
        'Quota',
        ({ Quota, Stored }) => shareOf(Quota, Stored),
        (row) => quotaCell(row),
      ),
    (loading || any('Public')) &&
      column(
        'Public',
        ({ Public }) => Public && 'public',
        ({ Public }) =>
          Public ? html`<${State} of="Public" />` : Public === false ? quiet('No') : loading ? quiet('…') : undefined,
      ),
    column(
      'Created',
      ({ created }) => created,
      ({ created }) => html`<${Time} of=${created} />`,
    ),
  ].filter(Boolean)
}

function objectsCell({ Numbers, Counted }) {
  if (Numbers) return Numbers.Objects.toLocaleString()
  return (
    Counted &&
    html`<span>${Counted.Objects.toLocaleString()} <span class="quiet"><${Time} of=${Counted.At} /></span></span>`
  )
}

function versionsCell({ Versioning, ObjectLock, Numbers }) {
  if (Versioning === undefined) return undefined
  if (Versioning === 'Disabled') return html`<span class="quiet">Off</span>`
  const older = Numbers && (Numbers.NoncurrentVersions > 0 || Numbers.DeleteMarkers > 0)
  const title = older
    ? `${formatCount(Numbers.NoncurrentVersions, 'older version')} with ${formatBytes(Numbers.NoncurrentBytes)}, ${formatCount(Numbers.DeleteMarkers, 'delete marker')}`
    : undefined
  return html`<span title=${title}>${ObjectLock ? html`<${Badge} shape="▣" kind="good">Lock<//>` : Versioning === 'Enabled' ? 'On' : 'Suspended'}${older && html`<span class="quiet"> +${Numbers.NoncurrentVersions.toLocaleString()}</span>`}</span>`
}

/** The larger share of what a quota allows, by bytes or objects. */
function shareOf(quota = {}, stored = {}) {
  const shares = ['Bytes', 'Objects'].map((member) =>
    quota[member] === undefined ? -1 : stored[member] / Math.max(1, quota[member]),
  )
  return Math.max(...shares)
}

function quotaCell({ name, Quota, Stored }) {
  if (!Quota) return undefined
  if (Quota.Bytes === undefined && Quota.Objects === undefined) return html`<span class="quiet">None</span>`
  const ofBytes = Quota.Bytes !== undefined && shareOf(Quota, Stored) === shareOf({ Bytes: Quota.Bytes }, Stored)
  const [most, have] = ofBytes ? [Quota.Bytes, Stored.Bytes] : [Quota.Objects, Stored.Objects]
  const text = ofBytes ? formatBytes(most) : formatCount(most, 'object')
  const share = Math.round((100 * have) / Math.max(1, most))
  return html`<${Bar} value=${have} max=${Math.max(1, most)} label=${`Quota of ${visibleText(name)}`} text=${`${share}% of ${text}`} />`
}
