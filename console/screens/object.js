import { html, useState } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { headObject } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { isReachable } from '../lib/signer.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { Acl } from './acl.js'
import { DealsOf } from './deals.js'
import { LifeOf } from './life.js'
import { Attributes, Details } from './object/facts.js'
import { Link } from './object/link.js'
import { Tags } from './object/tags.js'
import { CopyObjects, DeleteObjects, downloadObject } from './object-actions.js'
import { pathTo } from './objects.js'
import { Preview } from './preview.js'

/** One object: what is known about it, and what can be done with it. */
export function ObjectScreen({ params: { bucket }, query }) {
  const key = query.get('key') ?? ''
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  return html`<${Crumbs} links=${pathTo(bucket, folder)} />
    <${Page} title=${`Object ${key}`} heading=${html`<${Name} text=${key} />`}>
      ${
        key !== '' && isReachable(key)
          ? html`<${Known} key=${key} bucket=${bucket} name=${key} folder=${folder} />`
          : html`<p class="problem">
              Browsers remove the parts <code>.</code> and <code>..</code> from every address, so that this console cannot
              request this object, nor one without a name. Use another client of S3.
            </p>`
      }
    <//>`
}

function Known({ bucket, name, folder }) {
  const client = session.value
  const object = useLoaded((signal) => headObject(client, bucket, name, signal), [client, bucket, name])
  const [dialog, setDialog] = useState()
  const done = () => goTo(['buckets', bucket, 'objects'], { prefix: folder })
  const chosen = {
    bucket,
    folder,
    items: [{ name }],
    done,
    refresh: object.reload,
    onClose: () => setDialog(undefined),
  }
  return html`<${Loaded}
      of=${object}
      show=${(facts) => html`<div class="buttons">
          <button type="button" class="main" onClick=${() => downloadObject(bucket, name)}>Download</button>
          <button type="button" onClick=${() => setDialog({ View: CopyObjects })}>Copy or move…</button>
          <button type="button" class="danger" onClick=${() => setDialog({ View: DeleteObjects })}>Delete…</button>
        </div>
        <${Attributes} facts=${facts} />
        <${Preview} bucket=${bucket} name=${name} size=${facts.size} />
        <${Link} bucket=${bucket} name=${name} />
        <${Folded} title="Checksums and metadata"><${Details} bucket=${bucket} name=${name} facts=${facts} /><//>
        <${Folded} title="Edit tags"><${Tags} bucket=${bucket} name=${name} /><//>
        <${Folded} title="Edit rights (ACL)"><${Acl} place=${{ bucket, key: name }} /><//>
        <${DealsOf} bucket=${bucket} name=${name} />
        <${LifeOf} bucket=${bucket} name=${name} facts=${facts} changed=${object.reload} />`}
    />
    ${dialog && html`<${dialog.View} ...${chosen} />`}`
}
