import { html, useState } from '../../lib/html.js'
import { aclOf, Grants, grantsOf } from '../acl.js'

function Form({ value, store }) {
  const [{ owner, grants }] = useState(() => grantsOf(value))
  return html`<${Grants} owner=${owner} saved=${grants} save=${(rows) => store(aclOf(owner, rows))} />`
}

/** What a bucket itself grants to accounts and groups. */
export const acl = {
  name: 'ACL',
  query: 'acl',
  root: 'AccessControlPolicy',
  stays: true,
  hint: 'Rights in the bucket itself by account or group: an older way than policies.',
  View: Form,
}
