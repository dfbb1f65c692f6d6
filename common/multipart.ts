import busboy from 'busboy'

export interface MultipartBounds {
  /** Most parts. A form with more has the event `partsLimit`. */
  readonly maxParts?: number
  /** Most parts with a file name. A form with more has the event `filesLimit`. */
  readonly maxFiles?: number
  /** Most bytes of a text. A longer one is reported as truncated. */
  readonly maxFieldBytes: number
  /** Most bytes of a file. A longer one has the event `limit`. */
  readonly maxFileBytes?: number
}

/**
 * Opens the parser of multipart forms, for the server and its services. Throws Error for a Content-Type without a
 * boundary.
 * @param keepFolders false: names of files lose their folders
 */
export function openMultipart(contentType: string, bounds: MultipartBounds, keepFolders: boolean): busboy.Busboy {
  const { maxParts, maxFiles, maxFieldBytes, maxFileBytes } = bounds
  return busboy({
    headers: { 'content-type': contentType },
    defParamCharset: 'utf8',
    preservePath: keepFolders,
    limits: {
      // The parser takes what is as large as its limit for larger, and counts the end as a part.
      fieldSize: maxFieldBytes + 1,
      ...(maxFileBytes !== undefined && { fileSize: maxFileBytes + 1 }),
      ...(maxParts !== undefined && { parts: maxParts + 1 }),
      ...(maxFiles !== undefined && { files: maxFiles }),
    },
  })
}
