"""Spark's built-in functions, classified for maintenance (Spark 4.1).

A function in none of these lists is unknown, a user's own for instance: nothing can be said about it, so it is refused.
"""

from __future__ import annotations

from headrace.sql.reader.syntax.query_shape import SPANS
from headrace.sql.reader.syntax.tokens import words

SCALARS = words(
    """
    abs acos acosh add_months aes_decrypt aggregate approx_top_k_estimate array array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join array_max array_min
    array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap
    arrays_zip ascii asin asinh assert_true atan atan2 atanh base64 bigint bin binary bit_count bit_get bit_length
    bitmap_bit_position bitmap_bucket_number bitmap_count boolean bround btrim cardinality cbrt ceil ceiling char
    char_length character_length chr coalesce collate collation concat concat_ws contains conv convert_timezone
    cos cosh cot crc32 csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees double e
    element_at elt encode endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float
    floor forall format_number format_string from_avro from_csv from_json from_protobuf from_unixtime
    from_utc_timestamp from_xml get get_json_object getbit greatest hash hex hll_sketch_estimate hll_union hour
    hypot if ifnull initcap instr int is_valid_utf8 is_variant_null isnan isnotnull isnull json_array_length
    json_object_keys kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float last_day lcase least left len length levenshtein ln locate log log10 log1p log2
    lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_time make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key
    map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute mod
    month monthname months_between named_struct nanvl negative next_day nullif nullifzero nvl nvl2 octet_length
    overlay parse_json parse_url pi pmod position positive pow power printf quarter quote radians raise_error
    reduce regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr
    repeat replace reverse right rint round rpad rtrim schema_of_avro schema_of_csv schema_of_json
    schema_of_variant schema_of_xml sec second sentences sequence sha sha1 sha2 shiftleft shiftright
    shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex space split split_part sqrt
    st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith str_to_map string struct substr
    substring substring_index tan tanh theta_difference theta_intersection theta_sketch_estimate theta_union time
    time_diff time_trunc timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_avro to_binary
    to_char to_csv to_date to_json to_number to_protobuf to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys
    transform_values translate trim trunc try_add try_aes_decrypt try_divide try_element_at try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json
    try_parse_url try_subtract try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_get typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds
    unix_timestamp upper url_decode url_encode validate_utf8 variant_get weekday weekofyear width_bucket xpath
    xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64
    year zeroifnull zip_with
    """
)
"""Functions of one row that give the same result for the same arguments."""

AGGREGATES = words(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp variance
    """
)
"""Functions of a group of rows."""

WINDOWS = words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
"""Functions that need an OVER clause."""

TIME_WINDOWS = SPANS | {"window_time"}
"""Functions by which Spark puts rows into spans of time; they leave rows out and repeat them."""

GENERATORS = words(
    """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer sql_keywords stack
    variant_explode variant_explode_outer
    """
)
"""Functions that give several rows for one."""
