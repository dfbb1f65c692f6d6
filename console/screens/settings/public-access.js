import { sendXml } from '../../lib/api.js'
import { html } from '../../lib/html.js'
import { without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Check } from '../../parts/form.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { State } from '../../parts/state.js'
import { Single } from './single.js'

const BLOCKS = [
  ['BlockPublicAcls', 'Refuse ACLs that open something to everybody'],
  ['IgnorePublicAcls', 'Ignore what ACLs open to everybody'],
  ['BlockPublicPolicy', 'Refuse policies that open something to everybody'],
  ['RestrictPublicBuckets', 'Refuse everybody but the account of the owner'],
]

const isTrue = (text) => text?.trim().toLowerCase() === 'true'

/** What keeps a bucket from becoming public. */
export const publicAccessBlock = {
  name: 'Public access block',
  query: 'publicAccessBlock',
  root: 'PublicAccessBlockConfiguration',
  absent: 'NoSuchPublicAccessBlockConfiguration',
  hint: 'What keeps the bucket from being opened to everybody, also by mistake.',
  View: Single,
  Fields: ({ value }) =>
    BLOCKS.map(
      ([name, text]) => html`<${Check} label=${text} input=${{ name, defaultChecked: isTrue(value.get(name)) }} />`,
    ),
  change(root, values) {
    for (const [name] of BLOCKS) root.replace(name, values.has(name) ? ['true'] : [])
  },
}

/** Whether a bucket is public, by its policy, its ACL or the gateway. @returns what `useLoaded` returns */
export function useIsPublic(bucket) {
  const client = session.value
  const read = async (signal) => {
    const asked = { bucket, query: { policyStatus: '' }, signal }
    return isTrue((await sendXml(client, asked).catch(without('NoSuchBucketPolicy')))?.get('IsPublic'))
  }
  return useLoaded(read, [client, bucket])
}

export function PublicState({ of }) {
  return html`<${Loaded}
    of=${of}
    show=${(isPublic) => html`<p>
      <${State} of=${isPublic ? 'Public' : 'Not public'} />${isPublic ? ': its policy or its ACL opens it to everybody' : ''}
    </p>`}
  />`
}
