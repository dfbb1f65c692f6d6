/**
 * Stores second copies of objects in a folder, for example on another disk: of objects in the storage class SHELF, and
 * of objects for which a client requests a copy.
 *
 *   echo '{ "plugins": [{ "use": "./dist/examples/second-copy/index.js",
 *     "options": { "folder": "/mnt/shelf" } }] }' > shelf.json
 *   dealgate serve --config shelf.json
 *   aws s3api put-object --storage-class SHELF --bucket photos --key cat.jpg --body cat.jpg
 */
import { definePlugin, z } from 'dealgate/plugin'
import { checkCopies } from './check-copies.js'
import { copyJobs } from './copy-job.js'
import { getCopy, makeCopy } from './operations.js'
import { Shelf } from './shelf.js'
import { shelfClass } from './storage-class.js'

export default definePlugin({
  name: 'shelf',
  summary: 'Keeps second copies of objects in a folder.',
  options: z.object({
    folder: z.string().default('./shelf').describe('Folder for the copies; made if it does not exist.'),
    checkSeconds: z
      .number()
      .min(1)
      .max(1_900_000)
      .default(86_400)
      .describe('How often every copy is read and compared, seconds.'),
  }),
  create({ folder, checkSeconds }, host) {
    const shelf = new Shelf(folder, host.state)
    return {
      operations: [getCopy(shelf), makeCopy()],
      jobs: [copyJobs(shelf, host)],
      storageClasses: [shelfClass(host)],
      outputMetadata: ['shelf'],
      async start() {
        await shelf.open()
        host.schedule({
          name: 'check',
          everySeconds: checkSeconds,
          run: (current) => checkCopies(shelf, host, current),
        })
      },
    }
  },
})
