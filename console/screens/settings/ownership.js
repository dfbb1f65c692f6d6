import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Choice } from './inputs.js'
import { Single } from './single.js'

const OF = [
  ['BucketOwnerEnforced', 'BucketOwnerEnforced: the bucket owner owns all, ACLs are off'],
  ['BucketOwnerPreferred', 'BucketOwnerPreferred: ACLs are on, uploads can be given to the owner'],
  ['ObjectWriter', 'ObjectWriter: ACLs are on, who uploads owns the object'],
]

/** Whose the objects of a bucket are, and whether ACLs count. */
export const ownership = {
  name: 'Ownership of objects',
  query: 'ownershipControls',
  root: 'OwnershipControls',
  absent: 'OwnershipControlsNotFoundError',
  hint: 'Without a document it is ObjectWriter.',
  View: Single,
  Fields: ({ value }) =>
    html`<${Choice} label="Objects belong to" name="ObjectOwnership" of=${OF} chosen=${value.get('Rule', 'ObjectOwnership') ?? 'ObjectWriter'} />`,
  change(root, values) {
    const rule = root.child('Rule') ?? new Element('Rule')
    rule.replace('ObjectOwnership', [values.get('ObjectOwnership')])
    root.replace('Rule', [rule])
  },
}
