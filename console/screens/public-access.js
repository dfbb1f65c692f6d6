import { send, sendXml } from '../lib/api.js'
import { html } from '../lib/html.js'
import { without, writeDocument } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { element } from '../lib/xml.js'
import { Check, Form } from '../parts/form.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { notify } from '../parts/notices.js'
import { State } from '../parts/state.js'
import { Acl } from './acl.js'

const BLOCKS = [
  ['BlockPublicAcls', 'Refuse ACLs that open something to everybody'],
  ['IgnorePublicAcls', 'Ignore what ACLs open to everybody'],
  ['BlockPublicPolicy', 'Refuse policies that open something to everybody'],
  ['RestrictPublicBuckets', 'Refuse everybody but the account of the owner'],
]

/** Whether a bucket is public, what keeps it from becoming so, and its ACL. */
export function PublicAccess({ bucket }) {
  const client = session.value
  const read = async (signal) => {
    const [status, block] = await Promise.all([
      sendXml(client, { bucket, query: { policyStatus: '' }, signal }).catch(without('NoSuchBucketPolicy')),
      sendXml(client, { bucket, query: { publicAccessBlock: '' }, signal }).catch(
        without('NoSuchPublicAccessBlockConfiguration'),
      ),
    ])
    const isTrue = (text) => text?.toLowerCase() === 'true'
    return {
      isPublic: isTrue(status?.get('IsPublic')),
      blocks: new Set(BLOCKS.map(([name]) => name).filter((name) => isTrue(block?.get(name)))),
    }
  }
  const access = useLoaded(read, [client, bucket])
  const save = async (values) => {
    const chosen = BLOCKS.map(([name]) => name).filter((name) => values.has(name))
    const query = 'publicAccessBlock'
    if (chosen.length === 0) await send(client, { method: 'DELETE', bucket, query: { [query]: '' } })
    else {
      const members = chosen.map((name) => element(name, 'true'))
      await writeDocument(client, { bucket }, query, element('PublicAccessBlockConfiguration', members))
    }
    notify('The public access block was saved.')
    access.reload()
  }
  return html`<h2>Access</h2>
    <${Loaded}
      of=${access}
      show=${({ isPublic, blocks }) => html`<p>
          <${State} of=${isPublic ? 'Public' : 'Not public'} />${isPublic ? ': its policy or its ACL opens it to everybody' : ''}
        </p>
        <${Form} action=${save} submit="Save public access block">
          ${BLOCKS.map(([name, text]) => html`<${Check} label=${text} input=${{ name, defaultChecked: blocks.has(name) }} />`)}
        <//>`}
    />
    <${Acl} place=${{ bucket }} saved=${access.reload} />`
}
