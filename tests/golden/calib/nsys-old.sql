-- An older export: no deviceId, no full names, no table of GPUs.
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (7, 'volta_sgemm_128x64_nn');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 300, 7);
