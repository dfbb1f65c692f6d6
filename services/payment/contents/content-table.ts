import { CID } from 'multiformats/cid'
import { create } from 'multiformats/hashes/digest'
import type { PackedContent } from '../../network/pack/pack.js'
import { tableOf } from '../../store/database.js'

/** Where the bytes of a content are: in the folder, with a storage provider alone, or nowhere. */
export type ContentLocation = 'here' | 'provider' | 'gone'

/** A file, or a directory, of which the CAR is what was uploaded. */
export type ContentKind = 'file' | 'directory'

export interface Content {
  readonly id: number
  readonly cid: string
  readonly kind: ContentKind
  /** Bytes of the content: of a file, or of the CAR of a directory. */
  readonly size: number
  /** Bytes of its CAR. */
  readonly carSize: number
  readonly place: ContentLocation
  /** Name of its CAR, or of the last one. */
  readonly file: string
}

/** The CAR of a content that is not named otherwise. */
export function fileNamed(cid: string): string {
  return `${cid}.car`
}

export const CONTENT_COLUMNS =
  'contents.id, cid, kind, size, car_size AS "carSize", place, coalesce(file, cid || \'.car\') AS file'

/** Code of SHA-256 in multihashes. */
const SHA_256 = 0x12

/** The table of contents. Call writing methods inside a transaction. */
export class ContentTable extends tableOf({
  find: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE cid = ?`,
  ofBlock: `SELECT ${CONTENT_COLUMNS} FROM blocks JOIN contents ON contents.id = blocks.content WHERE digest = ?
    ORDER BY place = 'here' DESC, contents.id LIMIT 1`,
  total: "SELECT coalesce(sum(car_size), 0) AS total FROM contents WHERE place = 'here'",
  add: `INSERT INTO contents (cid, kind, size, car_size, file) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (cid) DO UPDATE SET place = 'here', car_size = excluded.car_size, file = excluded.file`,
  addBlock: 'INSERT INTO blocks (digest, content) VALUES (?, ?) ON CONFLICT DO NOTHING',
}) {
  find(cid: string): Promise<Content | undefined> {
    return this.sql.find.get<Content>(cid)
  }

  /** True while the CAR of the content is in the folder. */
  async isHere(cid: string): Promise<boolean> {
    return (await this.find(cid))?.place === 'here'
  }

  /**
   * A content that has the block: one that is here, if there is one.
   * @param digest SHA-256
   */
  async ofBlock(digest: Uint8Array): Promise<Content | undefined> {
    const found = await this.sql.ofBlock.get<Content>(digest)
    // A former version named each block for one content alone: the root of another may be missing.
    const content = found ?? (await this.find(CID.createV0(create(SHA_256, digest)).toString()))
    return content?.place === 'gone' ? undefined : content
  }

  async totalBytes(): Promise<number> {
    return (await this.sql.total.get<{ total: number }>())?.total ?? 0
  }

  /**
   * Adds a content whose CAR is here from now on.
   * @param digests of its blocks
   */
  async add(
    { cid, kind, size, carSize, file }: PackedContent & Pick<Content, 'kind' | 'file'>,
    digests: readonly Uint8Array[],
  ): Promise<Content> {
    await this.sql.add.run(cid, kind, size, carSize, file)
    const content = (await this.find(cid)) as Content
    for (const digest of digests) await this.sql.addBlock.run(digest, content.id)
    return content
  }
}

/**
 * What was uploaded, once per content: by the CID of its root, a CIDv0. `blocks` finds the content that has a block, by
 * its SHA-256; each is in the CAR of the content. Sizes are bytes.
 */
export const contentSchema = `
  CREATE TABLE contents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cid TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    car_size INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE blocks (
    digest BLOB PRIMARY KEY,
    content INTEGER NOT NULL REFERENCES contents (id)
  ) STRICT, WITHOUT ROWID;
`

/**
 * Contents go away. `place` is `here` while the CAR is in the folder, `provider` when only a storage provider has the
 * bytes, and `gone` when no upload needs them. A block may be in several contents, so that it is found while one is
 * left. `packed_cid` is the CID of an upload in the CAR of its deal, by which the provider gives it back.
 * `created_epoch` is null for uploads of earlier versions, until the next start.
 */
export const retentionSchema = `
  ALTER TABLE contents ADD COLUMN place TEXT NOT NULL DEFAULT 'here';
  CREATE INDEX contents_by_place ON contents (id) WHERE place <> 'gone';
  CREATE TABLE shared_blocks (
    digest BLOB NOT NULL,
    content INTEGER NOT NULL REFERENCES contents (id),
    PRIMARY KEY (digest, content)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO shared_blocks SELECT digest, content FROM blocks;
  DROP TABLE blocks;
  ALTER TABLE shared_blocks RENAME TO blocks;
  CREATE INDEX blocks_of_content ON blocks (content);
  ALTER TABLE uploads ADD COLUMN packed_cid TEXT;
  ALTER TABLE uploads ADD COLUMN created_epoch INTEGER;
  CREATE INDEX uploads_of_content ON uploads (content);
  CREATE INDEX pending_uploads ON uploads (created_epoch) WHERE status = 'Pending';
  CREATE INDEX open_uploads ON uploads (wallet, file_size) WHERE status NOT IN ('Success', 'Refunded');
`

/** `file` is the name of the CAR; null for `<cid>.car`. */
export const carFileSchema = 'ALTER TABLE contents ADD COLUMN file TEXT'

/** The bytes of a content are those of a file, or the CAR of a directory. */
export const directorySchema = `
  ALTER TABLE contents ADD COLUMN kind TEXT NOT NULL DEFAULT 'file';
`
