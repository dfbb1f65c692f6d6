import type { XmlNode } from '../../../common/xml/xml.js'
import { readSmallForm } from '../../../request/form/small-form.js'
import { normalized } from './names.js'
import { fieldsNode } from './read-text.js'
import type { Shape } from './shape.js'

/**
 * Reads a multipart form into the children of an element. A file becomes a text; its name becomes the member FileName
 * if the schema has one. Throws S3Error.
 */
export async function readForm(bytes: Buffer, contentType: string, shape: Shape): Promise<XmlNode> {
  const fields = await readSmallForm(bytes, contentType)
  const named = shape.kind === 'object' && shape.names.has(normalized('FileName'))
  return fieldsNode(
    fields.flatMap(({ name, text, fileName }): [string, string][] =>
      named && fileName
        ? [
            [name, text],
            ['FileName', fileName],
          ]
        : [[name, text]],
    ),
  )
}
