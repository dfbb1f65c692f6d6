import { randomUUID } from 'node:crypto'

const UPLOAD_ID = /^[A-Za-z0-9_-]{16,128}$/
const FILE_NAME = /^([1-9][0-9]{0,4})-[A-Za-z0-9-]{1,64}$/

/** True when the id is safe as part of a path. */
export function isUploadId(uploadId: string): boolean {
  return UPLOAD_ID.test(uploadId)
}

/** The part number in the name of a staged file; undefined for any other name. */
export function partNumberOf(file: string): number | undefined {
  const match = FILE_NAME.exec(file)
  return match ? Number(match[1]) : undefined
}

/** The key of a part's record. */
export function partKey(uploadId: string, partNumber: number): string {
  return `${uploadId}/${partNumber}`
}

/** Adds the name of a staged file to those of its part number. */
export function addTo(files: Map<number, string[]>, partNumber: number, file: string): void {
  const names = files.get(partNumber)
  if (names) names.push(file)
  else files.set(partNumber, [file])
}

/** A name for the bytes of a part that no other attempt at it has. */
export function newFile(partNumber: number): string {
  return `${partNumber}-${randomUUID()}`
}
