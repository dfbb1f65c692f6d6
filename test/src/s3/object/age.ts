import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Decrypter } from 'age-encryption'
import { temporaryFolder } from '../../../support/content/folders.js'
import { isInstalled, runAny } from '../../../support/programs/run.js'

/**
 * What the program age makes of a file, or its library where it is absent.
 *
 * @param keys lines with secret keys, as in a file of keys
 * @returns undefined if none of the keys opens it
 */
export async function ageDecrypt(
  t: { teardown(run: () => unknown): void },
  file: Buffer,
  keys: string,
): Promise<Buffer | undefined> {
  if (!isInstalled('age')) {
    const decrypter = new Decrypter()
    for (const [identity] of keys.matchAll(/^AGE-SECRET-KEY-\S+/gm)) decrypter.addIdentity(identity)
    return decrypter.decrypt(file).then(Buffer.from, () => undefined)
  }
  const folder = temporaryFolder(t)
  await writeFile(join(folder, 'keys'), keys)
  await writeFile(join(folder, 'object.age'), file)
  const { code, stdout, stderr } = await runAny('age', ['-d', '-i', join(folder, 'keys'), join(folder, 'object.age')])
  if (code === 0) return stdout
  if (/no identity matched/.test(stderr)) return undefined
  throw new Error(`age: ${stderr}`)
}
