import { sendXml } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { refuseChanged, writeDocument } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { element } from '../lib/xml.js'
import { Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { notify } from '../parts/notices.js'

const GROUPS = [
  ['http://acs.amazonaws.com/groups/global/AllUsers', 'Everybody, also without a signature'],
  ['http://acs.amazonaws.com/groups/global/AuthenticatedUsers', 'Everybody who signs'],
  ['http://acs.amazonaws.com/groups/s3/LogDelivery', 'The delivery of logs'],
]
const PERMISSIONS = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL']
const XSI = 'http://www.w3.org/2001/XMLSchema-instance'

/** The access control list of a bucket or object. @param place { bucket, key?, versionId? }; @param saved is called after a change */
export function Acl({ place, saved }) {
  const client = session.value
  const read = async (signal) => grantsOf(await sendXml(client, { ...place, query: { acl: '' }, signal }))
  const acl = useLoaded(read, [client, place.bucket, place.key, place.versionId])
  const save = async (grants) => {
    refuseChanged(acl.value, await read())
    await writeDocument(client, place, 'acl', aclOf(acl.value.owner, grants))
    notify('The ACL was saved.')
    acl.reload()
    saved?.()
  }
  return html`<h2>ACL</h2>
    <${Loaded} of=${acl} show=${({ owner, grants }) => html`<${Grants} owner=${owner} saved=${grants} save=${save} />`} />`
}

/** @returns { owner, grants: [{ grantee, permission }] } of a document */
export function grantsOf(root) {
  const grants = (root.child('AccessControlList')?.all('Grant') ?? []).map((grant) => ({
    grantee: grant.get('Grantee', 'URI') ?? grant.get('Grantee', 'ID') ?? '',
    permission: grant.get('Permission'),
  }))
  return { owner: root.get('Owner', 'ID'), grants }
}

/** The document of grants. */
export function aclOf(owner, grants) {
  const list = grants.map(({ grantee, permission }) => {
    const [type, content] = GROUPS.some(([uri]) => uri === grantee)
      ? ['Group', element('URI', grantee)]
      : ['CanonicalUser', element('ID', grantee)]
    const who = `<Grantee xmlns:xsi="${XSI}" xsi:type="${type}">${content}</Grantee>`
    return element('Grant', [who, element('Permission', permission)])
  })
  return element('AccessControlPolicy', [element('Owner', [element('ID', owner)]), element('AccessControlList', list)])
}

/** The form of an access control list. @param saved grants, the same array until they are read again */
export function Grants({ owner, saved, save }) {
  // Not by an effect, which comes late, and would take back a first change.
  const [edited, setEdited] = useState({ of: saved, rows: saved })
  const rows = edited.of === saved ? edited.rows : saved
  const setRows = (next) => setEdited({ of: saved, rows: next })
  const change = (at, members) => setRows(rows.map((row, i) => (i === at ? { ...row, ...members } : row)))
  return html`<${Form} action=${() => save(rows)} submit="Save ACL" disabled=${rows === saved}>
    <p class="quiet">Names accounts by their canonical ids. It counts where the ownership of objects is not BucketOwnerEnforced; otherwise a policy decides.</p>
    ${rows.map(
      ({ grantee, permission }, i) => html`<div class="pair">
        <${Grantee} at=${i + 1} value=${grantee} owner=${owner} change=${(text) => change(i, { grantee: text })} />
        <select aria-label=${`Permission of grant ${i + 1}`} value=${permission} onChange=${(event) => change(i, { permission: event.target.value })}>
          ${PERMISSIONS.map((name) => html`<option value=${name}>${name}</option>`)}
        </select>
        <button type="button" onClick=${() => setRows(rows.toSpliced(i, 1))} aria-label=${`Remove grant ${i + 1}`}>Remove</button>
      </div>`,
    )}
    <button type="button" onClick=${() => setRows([...rows, { grantee: GROUPS[1][0], permission: 'READ' }])}>Add grant</button>
  <//>`
}

function Grantee({ at, value, owner, change }) {
  const isKnown = value === owner || GROUPS.some(([uri]) => uri === value)
  return html`<select aria-label=${`Grantee ${at}`} value=${isKnown ? value : 'id'} onChange=${(event) => change(event.target.value === 'id' ? '' : event.target.value)}>
      <option value=${owner}>The owner</option>
      ${GROUPS.map(([uri, text]) => html`<option value=${uri}>${text}</option>`)}
      <option value="id">An account</option>
    </select>
    ${!isKnown && html`<input aria-label=${`Canonical id of grantee ${at}`} value=${value} required pattern="[0-9a-f]{64}" autocomplete="off" onInput=${(event) => change(event.target.value)} />`}`
}
