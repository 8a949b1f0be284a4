-- Two ledgers of tables 1, as the version before pins and chained totals wrote them.
PRAGMA application_id = 1668247142;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE budget (
	dataset VARCHAR(200) NOT NULL, 
	currency VARCHAR(16) NOT NULL, 
	relation VARCHAR(32) NOT NULL, 
	unit TEXT NOT NULL, 
	trust VARCHAR(32) NOT NULL, 
	guarantee TEXT NOT NULL, 
	limit_amount BIGINT NOT NULL, 
	limit_delta BIGINT NOT NULL, 
	spent_amount BIGINT NOT NULL, 
	spent_delta BIGINT NOT NULL, 
	entries BIGINT NOT NULL, 
	head VARCHAR(64) NOT NULL, 
	PRIMARY KEY (dataset), 
	CONSTRAINT spent_not_negative CHECK (spent_amount >= 0 AND spent_delta >= 0)
);
INSERT INTO "budget" VALUES('survey','GDP','add-remove','record','central','{"assumptions":[],"delta":"0x1.4f8b588e368f1p-17","mu":"0x1.4000000000000p+1","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',6871947673600,11529215046068,1527487695943,0,5,'ed9002ccaa5d0765741c81bcd3e10e35f1f1cb0495d5bfc53c11f5404222416e');
INSERT INTO "budget" VALUES('pair','ApproxDP','add-remove','record','central','{"assumptions":[],"delta":"0x1.0c6f7a0b5ed8dp-20","epsilon":"0x1.8000000000000p+1","relation":"add-remove","trust":"central","type":"ApproxDP","unit":"record"}',3298534883328,1152921504606,54975581390,23058430093,3,'6189649be4401600ba3ec3ede3c794e10196fdf8fc3eb4de21934284ee8eb4fb');
CREATE TABLE entry (
	dataset VARCHAR(200) NOT NULL, 
	seq BIGINT NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	guarantee TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	delta BIGINT NOT NULL, 
	statements TEXT NOT NULL, 
	method TEXT NOT NULL, 
	plan_sha256 VARCHAR(64) NOT NULL, 
	charge_seq BIGINT, 
	release_sha256 VARCHAR(64) NOT NULL, 
	version TEXT NOT NULL, 
	note TEXT NOT NULL, 
	prev VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (dataset, seq), 
	FOREIGN KEY(dataset, charge_seq) REFERENCES entry (dataset, seq), 
	CONSTRAINT one_successor UNIQUE (dataset, prev), 
	CONSTRAINT one_receipt UNIQUE (dataset, charge_seq), 
	CONSTRAINT never_refunded CHECK (amount >= 0 AND delta >= 0), 
	FOREIGN KEY(dataset) REFERENCES budget (dataset)
);
INSERT INTO "entry" VALUES('survey',1,'open','2026-11-22T15:29:35.479263+00:00','{"assumptions":[],"delta":"0x1.4f8b588e368f1p-17","mu":"0x1.0000000000000p+1","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',4398046511104,11529215046068,'','','',NULL,'','','first wave','0000000000000000000000000000000000000000000000000000000000000000','7b1d32c34e6347e810838ecd13fc9f8605843a3e4124ac31764fe56da57a50bb');
INSERT INTO "entry" VALUES('survey',2,'charge','2026-11-22T15:29:35.484420+00:00','{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.0000000000000p+0","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',1099511627776,0,'[{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.0000000000000p+0","relation":"add-remove","trust":"central","type":"GDP","unit":"record"},{"assumptions":[],"epsilon":"0x1.0000000000000p+2","relation":"add-remove","trust":"central","type":"PureDP","unit":"record"}]','toy 1','abababababababababababababababababababababababababababababababab',NULL,'','','','7b1d32c34e6347e810838ecd13fc9f8605843a3e4124ac31764fe56da57a50bb','34c8c542bbde63e71620297be890a271e4df8b294f784c2842d31362de3deb3a');
INSERT INTO "entry" VALUES('survey',3,'receipt','2026-11-22T15:29:35.484420+00:00','{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.0000000000000p+0","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',0,0,'[{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.0000000000000p+0","relation":"add-remove","trust":"central","type":"GDP","unit":"record"},{"assumptions":[],"epsilon":"0x1.0000000000000p+2","relation":"add-remove","trust":"central","type":"PureDP","unit":"record"}]','toy 1','abababababababababababababababababababababababababababababababab',2,'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','0.1.0','','34c8c542bbde63e71620297be890a271e4df8b294f784c2842d31362de3deb3a','cdb5d097d525f1ad8595a24fc9574f92ae96a6e05e183152402d98586f3b6d62');
INSERT INTO "entry" VALUES('survey',4,'charge','2026-11-22T15:29:35.490826+00:00','{"assumptions":[],"epsilon":"0x1.0000000000000p-1","relation":"add-remove","trust":"central","type":"PureDP","unit":"record"}',427976068167,0,'[{"assumptions":[],"epsilon":"0x1.0000000000000p-1","relation":"add-remove","trust":"central","type":"PureDP","unit":"record"}]','toy 1','abababababababababababababababababababababababababababababababab',NULL,'','','','cdb5d097d525f1ad8595a24fc9574f92ae96a6e05e183152402d98586f3b6d62','70841188bb101ed815ebfbdf900619cb4d541a0c9b9b83e4f9d7b0c4cd53eddd');
INSERT INTO "entry" VALUES('survey',5,'amend','2026-11-22T15:29:35.492680+00:00','{"assumptions":[],"delta":"0x1.4f8b588e368f1p-17","mu":"0x1.4000000000000p+1","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',6871947673600,11529215046068,'','','',NULL,'','','second wave','70841188bb101ed815ebfbdf900619cb4d541a0c9b9b83e4f9d7b0c4cd53eddd','ed9002ccaa5d0765741c81bcd3e10e35f1f1cb0495d5bfc53c11f5404222416e');
INSERT INTO "entry" VALUES('pair',1,'open','2026-11-22T15:29:35.496918+00:00','{"assumptions":[],"delta":"0x1.0c6f7a0b5ed8dp-20","epsilon":"0x1.8000000000000p+1","relation":"add-remove","trust":"central","type":"ApproxDP","unit":"record"}',3298534883328,1152921504606,'','','',NULL,'','','','0000000000000000000000000000000000000000000000000000000000000000','3a296a4e4689989fad2a56177a5d48f6a8e67cc78ddfa943c3f5d26fcddeeecd');
INSERT INTO "entry" VALUES('pair',2,'charge','2026-11-22T15:29:35.513464+00:00','{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.999999999999ap-3","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',43980465112,0,'[{"assumptions":[],"delta":"0x0.0p+0","mu":"0x1.999999999999ap-3","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}]','toy 1','abababababababababababababababababababababababababababababababab',NULL,'','','','3a296a4e4689989fad2a56177a5d48f6a8e67cc78ddfa943c3f5d26fcddeeecd','8832db1b05d99bd038def5573e16953059170917afe98476904e0fe2635926f5');
INSERT INTO "entry" VALUES('pair',3,'charge','2026-11-22T15:29:35.531180+00:00','{"assumptions":[],"delta":"0x1.5798ee2308c3ap-26","mu":"0x1.999999999999ap-4","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}',10995116278,23058430093,'[{"assumptions":[],"delta":"0x1.5798ee2308c3ap-26","mu":"0x1.999999999999ap-4","relation":"add-remove","trust":"central","type":"GDP","unit":"record"}]','toy 1','abababababababababababababababababababababababababababababababab',NULL,'','','','8832db1b05d99bd038def5573e16953059170917afe98476904e0fe2635926f5','6189649be4401600ba3ec3ede3c794e10196fdf8fc3eb4de21934284ee8eb4fb');
COMMIT;
